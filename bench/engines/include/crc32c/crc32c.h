// CRC-32C by the processor's instruction, for LevelDB, whose own code computes it by tables. LevelDB
// uses the function of this name when it is compiled with HAVE_CRC32C. Requires SSE 4.2.
#pragma once

#include <nmmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crc32c {

inline uint32_t Extend(uint32_t crc, const uint8_t* data, size_t count) {
  uint64_t state = crc ^ 0xffffffffu;
  for (; count >= 8; data += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof(word));
    state = _mm_crc32_u64(state, word);
  }
  for (; count > 0; ++data, --count) {
    state = _mm_crc32_u8(static_cast<uint32_t>(state), *data);
  }
  return static_cast<uint32_t>(state) ^ 0xffffffffu;
}

}  // namespace crc32c
