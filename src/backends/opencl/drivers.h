// OpenCL's drivers without their loader, libOpenCL: for systems that lack it or its list of drivers (/etc/OpenCL/vendors).
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/api.h"

namespace naru::backends::opencl {

// F(name, index): the place of each function in the table that every object of a driver begins with (the extension cl_khr_icd; the order of
// CL/cl_icd.h), by which the loader and this file call it.
#define NARU_OPENCL_TABLE(F)           \
  F(clGetPlatformInfo, 1)              \
  F(clGetDeviceIDs, 2)                 \
  F(clGetDeviceInfo, 3)                \
  F(clCreateCommandQueue, 9)           \
  F(clReleaseCommandQueue, 11)         \
  F(clCreateBuffer, 14)                \
  F(clReleaseMemObject, 18)            \
  F(clCreateProgramWithSource, 26)     \
  F(clCreateProgramWithBinary, 27)     \
  F(clReleaseProgram, 29)              \
  F(clBuildProgram, 30)                \
  F(clGetProgramInfo, 32)              \
  F(clGetProgramBuildInfo, 33)         \
  F(clCreateKernel, 34)                \
  F(clReleaseKernel, 37)               \
  F(clSetKernelArg, 38)                \
  F(clGetKernelWorkGroupInfo, 40)      \
  F(clGetEventInfo, 42)                \
  F(clReleaseEvent, 44)                \
  F(clGetEventProfilingInfo, 45)       \
  F(clFlush, 46)                       \
  F(clFinish, 47)                      \
  F(clEnqueueReadBuffer, 48)           \
  F(clEnqueueWriteBuffer, 49)          \
  F(clEnqueueCopyBuffer, 50)           \
  F(clEnqueueMapBuffer, 56)            \
  F(clEnqueueUnmapMemObject, 58)       \
  F(clEnqueueNDRangeKernel, 59)        \
  F(clEnqueueFillBuffer, 102)          \
  F(clEnqueueMarkerWithWaitList, 105)  \
  F(clEnqueueBarrierWithWaitList, 106) \
  F(clSVMAlloc, 126)                   \
  F(clSVMFree, 127)                    \
  F(clEnqueueSVMMemcpy, 129)           \
  F(clSetKernelArgSVMPointer, 134)
// Those whose object is not their first argument.
#define NARU_OPENCL_TABLE_OTHERS(F) \
  F(clCreateContext, 4)             \
  F(clWaitForEvents, 41)

// The Api over the drivers in these files, with the platforms of all that open, in their order. library.trouble(): why the last one failed,
// if all did. Only the last call's is valid.
Api open_drivers(const std::vector<std::string>& files);
// The files that drivers of this system may be in: what the loader's list names, where there is one, and the usual names.
std::vector<std::string> usual_drivers();

}  // namespace naru::backends::opencl
