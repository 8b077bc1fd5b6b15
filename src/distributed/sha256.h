// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104).
#pragma once

#include <string>
#include <string_view>

namespace naru::distributed {

inline constexpr size_t kSha256Bytes = 32;

std::string sha256(std::string_view text);
std::string hmac_sha256(std::string_view key, std::string_view text);
// Takes as long wherever they differ. Their lengths are no secret.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

}  // namespace naru::distributed
