// CUDA is not part of what extensions can use.
#error "naru compiles no CUDA sources: write the kernel for naru.kernel (docs/kernels.md), which runs on every device"
