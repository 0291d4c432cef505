#include "bench/onednn_gemm.h"

#include <cstring>
#include <unordered_map>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

namespace dragoman::bench {

using dnnl::memory;

struct OneDnnGemm::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul product;
  std::unordered_map<int, memory> arguments;
};

OneDnnGemm::OneDnnGemm(Numbers numbers, size_t m, size_t k, size_t n) : state_(std::make_unique<State>()) {
  const auto dim = [](size_t size) { return static_cast<memory::dim>(size); };
  const bool s8 = numbers == Numbers::kS8;
  const auto type = s8 ? memory::data_type::s8 : memory::data_type::f32;
  const memory::desc x({dim(m), dim(k)}, type, memory::format_tag::ab);
  const memory::desc w({dim(k), dim(n)}, type, memory::format_tag::any);
  const memory::desc bias({1, dim(n)}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc y({dim(m), dim(n)}, memory::data_type::f32, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  if (s8) attributes.set_output_scales(1 << 1, std::vector<float>(n, 0.01f));
  const dnnl::matmul::primitive_desc description({x, w, bias, y}, attributes, state_->engine);
  state_->product = dnnl::matmul(description);

  memory plain({{dim(k), dim(n)}, type, memory::format_tag::ab}, state_->engine);
  std::memset(plain.get_data_handle(), 0, plain.get_desc().get_size());
  memory packed(description.weights_desc(), state_->engine);
  dnnl::reorder(plain, packed).execute(state_->stream, plain, packed);
  state_->arguments = {{DNNL_ARG_SRC, memory(x, state_->engine)},
                       {DNNL_ARG_WEIGHTS, packed},
                       {DNNL_ARG_BIAS, memory(bias, state_->engine)},
                       {DNNL_ARG_DST, memory(y, state_->engine)}};
  for (const int zeroed : {DNNL_ARG_SRC, DNNL_ARG_BIAS}) {
    const memory& one = state_->arguments.at(zeroed);
    std::memset(one.get_data_handle(), 0, one.get_desc().get_size());
  }
  state_->stream.wait();
}

OneDnnGemm::~OneDnnGemm() = default;

void OneDnnGemm::run() {
  state_->product.execute(state_->stream, state_->arguments);
  state_->stream.wait();
}

}  // namespace dragoman::bench
