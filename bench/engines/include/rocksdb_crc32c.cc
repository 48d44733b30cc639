// RocksDB's CRC-32C by the processor's instruction: its Java package is built for every x86-64
// processor and computes it by tables. Loaded before RocksDB, this function takes the place of its
// own.
#include "crc32c/crc32c.h"

namespace rocksdb {
namespace crc32c {

uint32_t Extend(uint32_t crc, const char* data, size_t count) {
  return ::crc32c::Extend(crc, reinterpret_cast<const uint8_t*>(data), count);
}

}  // namespace crc32c
}  // namespace rocksdb
