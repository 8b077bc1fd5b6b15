#include "backends/metal/objc.h"

#include <cstdlib>

namespace naru::backends::metal {

Api Api::open() {
  Api a;
  a.objc = runtime::Library::open("NARU_METAL_LIBRARY", {"/usr/lib/libobjc.A.dylib"});
  a.metal = runtime::Library::open("NARU_METAL_LIBRARY", {"/System/Library/Frameworks/Metal.framework/Metal"});
#define NARU_FIND(result, name, parameters) a.objc.find(a.name, #name);
  NARU_OBJC(NARU_FIND)
#undef NARU_FIND
  a.metal.find(a.MTLCopyAllDevices, "MTLCopyAllDevices");
  if (!a.trouble().empty()) return a;
  const char* const named = std::getenv("NARU_MPS_LIBRARY");
  runtime::Library mps = runtime::Library::open(named && *named ? "NARU_MPS_LIBRARY" : "NARU_METAL_LIBRARY",
                                                {"/System/Library/Frameworks/MetalPerformanceShaders.framework/MetalPerformanceShaders"});
  mps.find(a.MPSSupportsMTLDevice, "MPSSupportsMTLDevice");
#define NARU_REGISTER(result, name, selector_name, parameters) a.name.selector = a.sel_registerName(selector_name);
  NARU_METAL_MESSAGES(NARU_REGISTER)
#undef NARU_REGISTER
  return a;
}

const Api& api() {
  static const auto* const a = new Api(Api::open());
  return *a;
}

std::string text_of(id string) {
  const char* const text = string ? api().utf8(string) : nullptr;
  return text ? text : "";
}

id string_of(const std::string& text) { return api().string(api().objc_getClass("NSString"), text.c_str()); }

std::string words_of(id error) { return error ? text_of(api().description(error)) : "no reason given"; }

}  // namespace naru::backends::metal
