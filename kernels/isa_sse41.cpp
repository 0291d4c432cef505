#include "kernels/isa_sse41.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kSse41 = table<Sse41>();
}
