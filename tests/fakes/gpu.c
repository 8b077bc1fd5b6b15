/* A small driver in place of libcuda or libamdhip64 (the names are chosen by FAKE_HIP): which devices there are. What it has and does is said by
   the environment:
     NARU_FAKE_GPUS     devices, e.g. "0000:65:00.0 1234 8.0 40000 NVIDIA A100;0000:17:00.0 ...": PCI address, number of
                        the uuid in hexadecimal, compute capability, MiB, name; in the order in which the driver lists them,
                        where CUDA_DEVICE_ORDER does not say PCI_BUS_ID. CUDA_VISIBLE_DEVICES leaves what it leaves of that list
     NARU_FAKE_VERSION  of the driver (default 12080; HIP 60400000)
     NARU_FAKE_ERROR    "cuInit=803": the function fails with the code; "cuInit=803@2": only its second call does
     NARU_FAKE_CRASH    the function that crashes
     NARU_FAKE_HANG     the function that never returns
     NARU_FAKE_LOG      a file; each call adds a line "PID FUNCTION" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#ifdef FAKE_HIP
#define NAME(cuda, hip) hip
enum { kMajor = 23, kMinor = 61, kMultiprocessors = 63, kVersion = 60400000 };
#else
#define NAME(cuda, hip) cuda
enum { kMajor = 75, kMinor = 76, kMultiprocessors = 16, kVersion = 12080 };
#endif
/* Of cuda.cpp: cuInit was called; 0, or why nothing works here (3: it was not, or the process that forked this one has called it). */
void fake_initialised(void);
int fake_unusable(int at_init);
#define EXPORT __attribute__((visibility("default")))

typedef struct {
  char pci[32], name[128];
  unsigned uuid;
  int major, minor;
  size_t mib;
} Gpu;

static Gpu gpus[16];
static int listed[16]; /* their numbers, as far as the driver lists them */

#ifndef FAKE_HIP
static int by_address = -1; /* CUDA_DEVICE_ORDER, read once */

/* As CUDA reads it: numbers in the driver's order, or uuids' beginnings, up to the first entry that names nothing. */
static int visible(int n) {
  const char* order = getenv("CUDA_DEVICE_ORDER");
  if (by_address < 0) by_address = order && !strcmp(order, "PCI_BUS_ID");
  if (by_address)
    for (int i = 1; i < n; ++i)
      for (int j = i; j > 0 && strcasecmp(gpus[listed[j]].pci, gpus[listed[j - 1]].pci) < 0; --j) {
        const int swapped = listed[j];
        listed[j] = listed[j - 1], listed[j - 1] = swapped;
      }
  const char* at = getenv("CUDA_VISIBLE_DEVICES");
  if (!at || strstr(at, "MIG-")) return n;
  int all[16], left = 0;
  memcpy(all, listed, sizeof all);
  while (left < 16) {
    while (*at == ' ') ++at;
    char* end = NULL;
    const long number = strtol(at, &end, 10);
    int found = -1;
    if (end != at && (*end == ',' || *end == ' ' || !*end)) {
      if (number >= 0 && number < n) found = all[number];
    } else {
      const size_t length = strcspn(at, ", ");
      for (int i = 0; i < n && length > 0; ++i) {
        char uuid[64];
        snprintf(uuid, sizeof uuid, "GPU-%08x-0000-0000-0000-000000000000", gpus[i].uuid);
        if (!strncmp(uuid, at, length)) found = i;
      }
    }
    if (found < 0) break;
    listed[left++] = found;
    at += strcspn(at, ",");
    if (!*at++) break;
  }
  return left;
}
#endif

static int load(void) {
  const char* text = getenv("NARU_FAKE_GPUS");
  int n = 0;
  while (text && *text && n < 16) {
    Gpu* g = &gpus[n];
    if (sscanf(text, " %31s %x %d.%d %zu %127[^;]", g->pci, &g->uuid, &g->major, &g->minor, &g->mib, g->name) != 6) abort();
    ++n;
    text = strchr(text, ';');
    if (text) ++text;
  }
  for (int i = 0; i < n; ++i) listed[i] = i;
#ifndef FAKE_HIP
  return visible(n);
#else
  return n;
#endif
}

/* The code that a call is to return. */
static int called(const char* function) {
  const char* path = getenv("NARU_FAKE_LOG");
  if (path) {
    FILE* log = fopen(path, "a");
    if (log) {
      fprintf(log, "%d %s\n", (int)getpid(), function);
      fclose(log);
    }
  }
  const char* crash = getenv("NARU_FAKE_CRASH");
  if (crash && !strcmp(crash, function)) abort();
  const char* hang = getenv("NARU_FAKE_HANG");
  if (hang && !strcmp(hang, function))
    for (;;) pause();
  const char* error = getenv("NARU_FAKE_ERROR");
  size_t length = strlen(function);
  if (!error || strncmp(error, function, length) || error[length] != '=') return 0;
  static char wanted[64];
  static int calls;
  if (strcmp(wanted, error)) snprintf(wanted, sizeof wanted, "%s", error), calls = 0;
  const char* at = strchr(error, '@');
  if (at && ++calls != atoi(at + 1)) return 0;
  return atoi(error + length + 1);
}
#define CALLED(cuda, hip)                       \
  const int code = called(NAME(#cuda, #hip));   \
  if (code) return code
#define NEEDS_INIT \
  if (fake_unusable(0)) return fake_unusable(0)

EXPORT int NAME(cuInit, hipInit)(unsigned flags) {
  (void)flags;
  CALLED(cuInit, hipInit);
  if (fake_unusable(1)) return fake_unusable(1);
  fake_initialised();
  return load() ? 0 : 100;
}
EXPORT int NAME(cuDriverGetVersion, hipDriverGetVersion)(int* version) {
  CALLED(cuDriverGetVersion, hipDriverGetVersion);
  const char* text = getenv("NARU_FAKE_VERSION");
  *version = text ? atoi(text) : kVersion;
  return 0;
}
EXPORT int NAME(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  CALLED(cuDeviceGetCount, hipGetDeviceCount);
  NEEDS_INIT;
  *count = load();
  return 0;
}
EXPORT int NAME(cuDeviceGet, hipDeviceGet)(int* device, int ordinal) {
  CALLED(cuDeviceGet, hipDeviceGet);
  NEEDS_INIT;
  if (ordinal < 0 || ordinal >= load()) return 101;
  *device = listed[ordinal];
  return 0;
}
EXPORT int NAME(cuDeviceGetName, hipDeviceGetName)(char* name, int length, int device) {
  CALLED(cuDeviceGetName, hipDeviceGetName);
  NEEDS_INIT;
  snprintf(name, (size_t)length, "%s", gpus[device].name);
  return 0;
}
EXPORT int NAME(cuDeviceGetUuid, hipDeviceGetUuid)(unsigned char* uuid, int device) {
  CALLED(cuDeviceGetUuid, hipDeviceGetUuid);
  NEEDS_INIT;
#ifdef FAKE_HIP
  char text[17];
  snprintf(text, sizeof text, "%016x", gpus[device].uuid);
  memcpy(uuid, text, 16);
#else
  memset(uuid, 0, 16);
  for (int i = 0; i < 4; ++i) uuid[i] = (unsigned char)(gpus[device].uuid >> (24 - 8 * i));
#endif
  return 0;
}
#ifndef FAKE_HIP
/* NARU_FAKE_MIG: each device is a slice with a number of its own. */
EXPORT int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  CALLED(cuDeviceGetUuid_v2, none);
  const int whole = cuDeviceGetUuid(uuid, device);
  if (whole == 0 && getenv("NARU_FAKE_MIG")) uuid[15] = (unsigned char)(device + 1);
  return whole;
}
#endif
EXPORT int NAME(cuDeviceTotalMem_v2, hipDeviceTotalMem)(size_t* bytes, int device) {
  CALLED(cuDeviceTotalMem_v2, hipDeviceTotalMem);
  NEEDS_INIT;
  *bytes = gpus[device].mib << 20;
  return 0;
}
EXPORT int NAME(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char* pci, int length, int device) {
  CALLED(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId);
  NEEDS_INIT;
  snprintf(pci, (size_t)length, "%s", gpus[device].pci);
  return 0;
}
EXPORT int NAME(cuDeviceGetAttribute, hipDeviceGetAttribute)(int* value, int attribute, int device) {
  CALLED(cuDeviceGetAttribute, hipDeviceGetAttribute);
  NEEDS_INIT;
  *value = attribute == kMajor ? gpus[device].major
           : attribute == kMinor ? gpus[device].minor
           : attribute == kMultiprocessors ? 108
#ifdef FAKE_HIP
           : attribute == 87 ? (gpus[device].major >= 10 ? 32 : 64)
           : attribute == 56 ? 1024
           : attribute == 57 ? 2048
           : attribute == 72 ? 65536
           : attribute == 74 ? 65536
           : attribute == 19 ? 8388608
#else
           : attribute == 10 ? 32
           : attribute == 1 ? 1024
           : attribute == 39 ? 2048
           : attribute == 82 ? 65536
           : attribute == 8 ? 49152
           : attribute == 38 ? 41943040
           : attribute == 97 ? (gpus[device].major >= 9 ? 232448 : 65536)
#endif
           : 0;
  return 0;
}
EXPORT int NAME(cuCtxCreate_v2, hipCtxCreate)(void** context, unsigned flags, int device) {
  (void)context, (void)flags, (void)device;
  CALLED(cuCtxCreate_v2, hipCtxCreate);
  return 0;
}

/* For cuda.cpp. */
#ifndef FAKE_HIP
int fake_gpu_shared(int device) { return gpus[device].major >= 9 ? 232448 : 65536; }
#endif
#ifdef FAKE_HIP
/* The name, where it is one of an architecture; else what the numbers give. */
const char* fake_gpu_architecture(int device) {
  static char text[16];
  if (!strncmp(gpus[device].name, "gfx", 3)) return gpus[device].name;
  snprintf(text, sizeof text, "gfx%d%d0", gpus[device].major, gpus[device].minor);
  return text;
}
#endif
int fake_called(const char* function) { return called(function); }
size_t fake_gpu_bytes(int device) { return gpus[device].mib << 20; }
int fake_gpu_capability(int device) { return gpus[device].major * 10 + gpus[device].minor; }
int fake_gpu_of_pci(const char* pci) {
  const int n = load();
  for (int i = 0; i < n; ++i)
    if (!strcasecmp(gpus[listed[i]].pci, pci)) return listed[i];
  return -1;
}
