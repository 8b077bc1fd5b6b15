"""Vector addition as in a CUDA tutorial, with <<<1, N>>> and over blocks, on any device."""
import torch

device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
source = """
// kernal function
__global__ void VecAdd(float *A, float *B, float *C)
{
	int i = threadIdx.x;
    C[i] = A[i] + B[i];
}

__global__ void VecAddBlocks(float* A, float* B, float* C, int N) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
}

int main()
{
	...
    VecAdd<<<1, N>>> (A, B, C);
    ...
}
"""
N = 1000
A, B = torch.randn(N, device=device), torch.randn(N, device=device)

C = torch.zeros(N, device=device)
torch.kernel(source, "VecAdd")(A, B, C, blocks=1, threads=N)
assert torch.equal(C, A + B)

C = torch.zeros(N, device=device)
torch.kernel(source, "VecAddBlocks")(A, B, C, N, blocks=(N + 255) // 256, threads=256)
assert torch.equal(C, A + B)
print("on", C.device, ":", C.sum().item())
