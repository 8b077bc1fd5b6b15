"""Vector addition as a CUDA tutorial writes it, <<<1, N>>> and over blocks, on whatever device there is."""
import torch

device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
source = """
kernel void VecAdd(const float* A, const float* B, float* C)
{
    int i = local_id(0);
    C[i] = A[i] + B[i];
}

kernel void VecAddBlocks(const float* A, const float* B, float* C, int n)
{
    int i = group_id(0) * local_size(0) + local_id(0);
    if (i < n)
        C[i] = A[i] + B[i];
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
