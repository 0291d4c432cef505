#include "bench/onednn_gemm.h"

#include <dlfcn.h>

#include <cstring>
#include <unordered_map>

#include "oneapi/dnnl/dnnl.hpp"

namespace dragoman::bench {
namespace {

using dnnl::memory;
using Primitive = OneDnnForm::Primitive;
using Input = OneDnnForm::Input;

constexpr int kShift = 127;  // from int8 to unsigned

// OpenMP reads its environment before main(), so that setenv() comes too late.
void use_one_thread() {
  using Set = void (*)(int);
  if (const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(1);
}

// The same three matrices and bias, as each primitive wants to see them. w_given: rows (n, k), as GemmData has them.
struct Descriptions {
  memory::desc x, w_given, w, bias, y;

  Descriptions(const OneDnnForm& form, const GemmData& data) {
    const auto m = static_cast<memory::dim>(data.m), k = static_cast<memory::dim>(data.k),
               n = static_cast<memory::dim>(data.n);
    const auto xt = form.input == Input::kF32  ? memory::data_type::f32
                    : form.input == Input::kU8 ? memory::data_type::u8
                                               : memory::data_type::s8;
    const auto wt = form.input == Input::kF32 ? memory::data_type::f32 : memory::data_type::s8;
    const auto f32 = memory::data_type::f32;
    using Tag = memory::format_tag;
    if (form.primitive == Primitive::kConvolution) {
      x = {{1, k, m}, xt, Tag::nwc};
      w_given = {{n, k, 1}, wt, Tag::oiw};
      w = {{n, k, 1}, wt, Tag::any};
      bias = {{n}, f32, Tag::a};
      y = {{1, n, m}, f32, Tag::nwc};
      return;
    }
    const bool inner = form.primitive == Primitive::kInnerProduct;
    x = {{m, k}, xt, Tag::ab};
    w_given = inner ? memory::desc({n, k}, wt, Tag::ab) : memory::desc({k, n}, wt, Tag::ba);
    w = {inner ? memory::dims{n, k} : memory::dims{k, n}, wt,
         form.primitive == Primitive::kMatmulTransposed ? Tag::ba : Tag::any};
    bias = inner ? memory::desc({n}, f32, Tag::a) : memory::desc({1, n}, f32, Tag::ab);
    y = {{m, n}, f32, Tag::ab};
  }
};

dnnl::primitive_attr attributes_of(const OneDnnForm& form, const GemmData& data) {
  dnnl::primitive_attr attributes;
  if (form.input == Input::kF32) return attributes;
  std::vector<float> scales = data.w_scale;
  for (float& scale : scales) scale *= kRowScale;
  attributes.set_output_scales(1 << 1, scales);
  return attributes;
}

// oneDNN 2 multiplies the bias by the scale, too.
std::vector<float> bias_of(const OneDnnForm& form, const GemmData& data) {
  std::vector<float> bias = data.bias;
  if (form.input == Input::kF32) return bias;
  const int shift = form.input == Input::kU8 ? kShift : 0;
  for (size_t i = 0; i < data.n; ++i)
    bias[i] = bias[i] / (kRowScale * data.w_scale[i]) - static_cast<float>(shift * data.w_sum[i]);
  return bias;
}

void fill_rows(const OneDnnForm& form, const GemmData& data, void* to) {
  if (form.input == Input::kF32) {
    std::memcpy(to, data.x_f32.data(), data.x_f32.size() * sizeof(float));
    return;
  }
  const int shift = form.input == Input::kU8 ? kShift : 0;
  for (size_t i = 0; i < data.x_s8.size(); ++i) static_cast<char*>(to)[i] = static_cast<char>(data.x_s8[i] + shift);
}

}  // namespace

struct OneDnnGemm::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive product;
  std::unique_ptr<Copies> weights;
  std::vector<std::unordered_map<int, memory>> arguments;  // by copy
  memory y;

  memory::desc make_product(const OneDnnForm& form, const Descriptions& d, const dnnl::primitive_attr& attributes) {
    const auto inference = dnnl::prop_kind::forward_inference;
    if (form.primitive == Primitive::kConvolution) {
      const dnnl::convolution_forward::primitive_desc made(
          {inference, dnnl::algorithm::convolution_direct, d.x, d.w, d.bias, d.y, {1}, {0}, {0}}, attributes, engine);
      product = dnnl::convolution_forward(made);
      return made.weights_desc();
    }
    if (form.primitive == Primitive::kInnerProduct) {
      const dnnl::inner_product_forward::primitive_desc made({inference, d.x, d.w, d.bias, d.y}, attributes, engine);
      product = dnnl::inner_product_forward(made);
      return made.weights_desc();
    }
    const dnnl::matmul::primitive_desc made({d.x, d.w, d.bias, d.y}, attributes, engine);
    product = dnnl::matmul(made);
    return made.weights_desc();
  }

  void fill(const OneDnnForm& form, const GemmData& data, const Descriptions& d, const memory::desc& packed,
            size_t copies) {
    weights = std::make_unique<Copies>(packed.get_size(), copies);
    const void* rows = data.s8 ? static_cast<const void*>(data.w_s8.data()) : data.w_f32.data();
    memory given(d.w_given, engine, const_cast<void*>(rows)), first(packed, engine, weights->at(0));
    dnnl::reorder(given, first).execute(stream, given, first);
    stream.wait();
    weights->repeat_first();
    memory x(d.x, engine), bias(d.bias, engine);
    y = memory(d.y, engine);
    fill_rows(form, data, x.get_data_handle());
    std::memcpy(bias.get_data_handle(), bias_of(form, data).data(), data.n * sizeof(float));
    for (size_t copy = 0; copy < copies; ++copy) {
      arguments.push_back({{DNNL_ARG_SRC, x},
                           {DNNL_ARG_WEIGHTS, memory(packed, engine, weights->at(copy))},
                           {DNNL_ARG_BIAS, bias},
                           {DNNL_ARG_DST, y}});
    }
  }
};

std::string OneDnnForm::name() const {
  const char* names[] = {"matmul", "matmul, W transposed", "inner product", "convolution"};
  const char* inputs[] = {"f32", "u8", "s8"};
  return std::string(names[static_cast<size_t>(primitive)]) + " " + inputs[static_cast<size_t>(input)];
}

std::vector<OneDnnForm> onednn_forms(bool s8) {
  if (!s8) {
    return {{Primitive::kConvolution, Input::kF32},
            {Primitive::kMatmul, Input::kF32},
            {Primitive::kMatmulTransposed, Input::kF32},
            {Primitive::kInnerProduct, Input::kF32}};
  }
  return {{Primitive::kConvolution, Input::kU8},      {Primitive::kConvolution, Input::kS8},
          {Primitive::kMatmul, Input::kU8},           {Primitive::kMatmul, Input::kS8},
          {Primitive::kMatmulTransposed, Input::kU8}, {Primitive::kInnerProduct, Input::kU8}};
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

OneDnnGemm::OneDnnGemm(std::unique_ptr<State> state) : state_(std::move(state)) {}
OneDnnGemm::~OneDnnGemm() = default;

std::unique_ptr<OneDnnGemm> OneDnnGemm::create(const OneDnnForm& form, const GemmData& data, size_t copies) try {
  use_one_thread();
  auto state = std::make_unique<State>();
  const Descriptions descriptions(form, data);
  const memory::desc packed = state->make_product(form, descriptions, attributes_of(form, data));
  state->fill(form, data, descriptions, packed, copies);
  return std::unique_ptr<OneDnnGemm>(new OneDnnGemm(std::move(state)));
} catch (const dnnl::error&) {
  return nullptr;
}

void OneDnnGemm::run(size_t copy) {
  state_->product.execute(state_->stream, state_->arguments[copy]);
  state_->stream.wait();
}

const float* OneDnnGemm::result() const {
  return static_cast<const float*>(state_->y.get_data_handle());
}

}  // namespace dragoman::bench
