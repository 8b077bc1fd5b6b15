#include "backends/rocm/driver.h"

#include <fmt/format.h>

#include "core/device_kinds.h"

namespace naru::backends::rocm {
namespace {

constexpr runtime::ErrorText kErrors[] = {
    {2, "hipErrorOutOfMemory", "no memory is left on the GPU or on the host", "End other programs that use the GPU"},
    {3, "hipErrorNotInitialized", "the process that forked this one had the driver in use",
     "Start workers with 'spawn' or 'forkserver', or fork before the first use of the GPU"},
    {35, "hipErrorInsufficientDriver", "the kernel's amdgpu module is older than the HIP run time",
     "Update the amdgpu module (amdgpu-dkms), or install an older ROCm"},
    {100, "hipErrorNoDevice", "the driver finds no GPU", "Check that `rocminfo` lists it, and that you may use /dev/kfd (group render)"},
    {101, "hipErrorInvalidDevice", "the driver does not accept a device that it listed", "Restart the machine"},
    {209, "hipErrorNoBinaryForGpu", "this ROCm does not support the GPU", "Install a ROCm that lists the GPU as supported"},
    {999, "hipErrorUnknown", "the driver does not say", "See dmesg | grep -i amdgpu; restart the machine"},
};

constexpr runtime::PerSystem kLibraries[] = {{"libamdhip64.so.7", nullptr, "amdhip64_7.dll"},
                                             {"libamdhip64.so.6", nullptr, "amdhip64_6.dll"},
                                             {"libamdhip64.so.5", nullptr, "amdhip64.dll"},
                                             {"libamdhip64.so"}};

std::string version_text(int version) { return fmt::format("HIP {}.{}", version / 10000000, version / 100000 % 100); }

}  // namespace

const runtime::GpuDriver kDriver{
    .kind = DeviceType::Rocm,
    .words = "AMD's ROCm",
    .install = "Debian: apt install libamdhip64-5; else AMD's packages, rocm.docs.amd.com",
    .load =
        "Load its module (sudo modprobe amdgpu), or pass the devices to the container "
        "(docker run --device /dev/kfd --device /dev/dri); if lspci shows no AMD card, there is none",
    .nodes = "/dev/kfd",
    .nodes_variable = "NARU_ROCM_DEVICE_NODE",
    .libraries = kLibraries,
    .library_variable = "NARU_ROCM_LIBRARY",
    .init = "hipInit",
    .version = "hipDriverGetVersion",
    .count = "hipGetDeviceCount",
    .get = "hipDeviceGet",
    .name = "hipDeviceGetName",
    .uuid = "hipDeviceGetUuid",
    .memory = "hipDeviceTotalMem",
    .pci = "hipDeviceGetPCIBusId",
    .attribute = "hipDeviceGetAttribute",
    .architecture = {{"hipGetDevicePropertiesR0600", 1160}, {"hipGetDeviceProperties", 396}},
    .slice_uuid = nullptr,
    .uuid_is_text = true,
    .major_attribute = 23,
    .minor_attribute = 61,
    .multiprocessors_attribute = 63,
    .limit_attributes = {87, 56, 57, 72, 74, 19},
    .version_text = version_text,
    .need_version = 50200000,
    .need_driver = "5.2",
    .need_major = 9,
    .need_minor = 0,
    .capability = "architecture gfx",
    .errors = kErrors,
    .visible = kind_of(DeviceType::Rocm).visible,
    .order = nullptr,
};

}  // namespace naru::backends::rocm
