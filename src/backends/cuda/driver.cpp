#include "backends/cuda/driver.h"

#include <fmt/format.h>

#include "core/device_kinds.h"

namespace naru::backends::cuda {
namespace {

constexpr runtime::ErrorText kErrors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "the driver refused a question", "Install the NVIDIA driver again"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "no memory is left on the GPU or on the host",
     "End other programs that use the GPU (nvidia-smi lists them)"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "the process that forked this one had the driver in use",
     "Start workers with 'spawn' or 'forkserver', or fork before the first use of the GPU"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the toolkit's stub was opened in place of the driver's library",
     "Take the toolkit's folder 'stubs' out of LD_LIBRARY_PATH"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "another process has the GPU for itself",
     "Wait for it, or lift the exclusive mode: sudo nvidia-smi -c 0"},
    {100, "CUDA_ERROR_NO_DEVICE", "the driver finds no GPU",
     "If `nvidia-smi -L` lists none either: check that lspci shows it and that no other driver (nouveau, vfio) has it"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "the driver does not accept a device that it listed", "Restart the machine"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "the GPU's memory has an error that can't be corrected",
     "Reset the GPU (sudo nvidia-smi --gpu-reset) or restart; if it comes back, the GPU is defective"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "the operating system refused the driver, often for want of rights on /dev/nvidia*",
     "Check the rights of /dev/nvidia*, and that the kernel module fits (dmesg | grep -i nvrm)"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "the operation is not permitted", "Check the rights of /dev/nvidia*"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "the machine's NVSwitch fabric is not up",
     "Start its manager: sudo systemctl start nvidia-fabricmanager"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "library and kernel module are of different driver versions, as after an update",
     "Restart the machine; in a container, use the host's driver library"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "a forward-compatibility library (cuda-compat) is in use, which this GPU does not support",
     "Take cuda-compat out of LD_LIBRARY_PATH, or update the NVIDIA driver"},
    {999, "CUDA_ERROR_UNKNOWN", "the driver does not say; often its module nvidia_uvm is missing, or the machine slept",
     "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm; if that does not help, restart the machine"},
};

// Containers (Kubernetes) and WSL keep it in folders that the loader may not search.
constexpr runtime::PerSystem kDriverLibraries[] = {
    {"libcuda.so.1", nullptr, "nvcuda.dll"}, {"/usr/local/nvidia/lib64/libcuda.so.1"}, {"/usr/lib/wsl/lib/libcuda.so.1"}};

std::string version_text(int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

const runtime::GpuDriver kDriver{
    .kind = DeviceType::Cuda,
    .words = "the NVIDIA driver",
    .install = "Debian: apt install nvidia-driver; Ubuntu: ubuntu-drivers install; in a container: docker run --gpus all",
    .load =
        "Load its module (sudo modprobe nvidia nvidia_uvm), or pass the devices to the container "
        "(docker run --gpus all); if lspci shows no NVIDIA card, there is none",
    .nodes = "/dev/nvidia[0-9]*",
    .nodes_variable = "NARU_CUDA_DEVICE_NODE",
    .libraries = kDriverLibraries,
    .library_variable = "NARU_CUDA_LIBRARY",
    .init = "cuInit",
    .version = "cuDriverGetVersion",
    .count = "cuDeviceGetCount",
    .get = "cuDeviceGet",
    .name = "cuDeviceGetName",
    .uuid = "cuDeviceGetUuid",
    .memory = "cuDeviceTotalMem_v2",
    .pci = "cuDeviceGetPCIBusId",
    .attribute = "cuDeviceGetAttribute",
    .architecture = {},
    .slice_uuid = "cuDeviceGetUuid_v2",
    .uuid_is_text = false,
    .major_attribute = 75,
    .minor_attribute = 76,
    .multiprocessors_attribute = 16,
    .limit_attributes = {10, 1, 39, 82, 8, 38},
    .version_text = version_text,
    // The first version with stream-ordered allocation.
    .need_version = 11020,
    .need_driver = "460.27",
    .need_major = 5,
    .need_minor = 0,
    .capability = "compute capability",
    .errors = kErrors,
    .visible = kind_of(DeviceType::Cuda).visible,
    .order = "CUDA_DEVICE_ORDER",
};

}  // namespace naru::backends::cuda
