#include "kernels/isa_avx512.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kAvx512 = table<Avx512>();
}
