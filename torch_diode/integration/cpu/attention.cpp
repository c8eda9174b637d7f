// Scaled dot-product attention of float32 on a CPU, in blocks of keys that stay in the cache.
//
// Vector lanes are queries. A block of queries is transposed once; keys and values are then read as
// they lie in memory, an element at a time that all lanes use, so that neither needs packing, and
// the softmax of a query stays in its lane. Both products run in the same register block of
// ROWS x MOST vectors, unrolled by a pragma: sums in arrays that unrolled lambdas use end up on the
// stack, at half the speed. `cpp_attention.py` renders this as a template of Inductor's.
{{ template.header().getvalue() }}
#include <limits>
#include <memory>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

namespace {{ name }}_attention {

using Vec = at::vec::Vectorized<float>;
constexpr int W = Vec::size();
constexpr int ROWS = W >= 16 ? 8 : 4;
constexpr int MOST = 2;
constexpr int64_t BLOCK = 128;
constexpr float LOWEST = -std::numeric_limits<float>::infinity();

// Strides in elements; 0 where a mask is the same along a dimension.
struct Mask {
  const float* data;
  int64_t query, key;
};

// out[j][lane] = the products of R keys with all queries; `top` becomes their maximum.
template <int R, int C>
ALWAYS_INLINE void scores(const float* keys, int64_t stride, const float* queries, float* out, int64_t depth, Vec* top) {
  Vec sums[R][C];
  UNROLL for (int r = 0; r < R; ++r)
    UNROLL for (int c = 0; c < C; ++c) sums[r][c] = Vec(0.0f);
  for (int64_t d = 0; d < depth; ++d) {
    Vec query[C];
    UNROLL for (int c = 0; c < C; ++c) query[c] = Vec::loadu(queries + (d * C + c) * W);
    UNROLL for (int r = 0; r < R; ++r) {
      const Vec key(keys[r * stride + d]);
      UNROLL for (int c = 0; c < C; ++c) sums[r][c] = at::vec::fmadd(key, query[c], sums[r][c]);
    }
  }
  UNROLL for (int r = 0; r < R; ++r)
    UNROLL for (int c = 0; c < C; ++c) {
      sums[r][c].store(out + (r * C + c) * W);
      top[c] = at::vec::maximum(top[c], sums[r][c]);
    }
}

// out[d][lane] += R columns of the values, weighted.
template <int R, int C>
ALWAYS_INLINE void weigh(const float* values, int64_t stride, const float* weights, float* out, int64_t count) {
  Vec sums[R][C];
  UNROLL for (int r = 0; r < R; ++r)
    UNROLL for (int c = 0; c < C; ++c) sums[r][c] = Vec::loadu(out + (r * C + c) * W);
  for (int64_t j = 0; j < count; ++j) {
    Vec weight[C];
    UNROLL for (int c = 0; c < C; ++c) weight[c] = Vec::loadu(weights + (j * C + c) * W);
    UNROLL for (int r = 0; r < R; ++r) {
      const Vec value(values[j * stride + r]);
      UNROLL for (int c = 0; c < C; ++c) sums[r][c] = at::vec::fmadd(value, weight[c], sums[r][c]);
    }
  }
  UNROLL for (int r = 0; r < R; ++r)
    UNROLL for (int c = 0; c < C; ++c) sums[r][c].store(out + (r * C + c) * W);
}

// Adds the mask to the scores of keys start to start + count, and hides keys after a query.
template <int C>
inline void mask_scores(const Mask& mask, bool causal, int64_t first, int64_t rows, int64_t start, int64_t count, float* out, float* added, Vec* top) {
  constexpr int L = C * W;
  const float* data = mask.data + start * mask.key;
  if (mask.data != nullptr && mask.query != 0) {
    if (mask.key == 1) {
      at::vec::transpose_mxn<float>(data, mask.query, added, L, (int)rows, (int)count);
    } else {
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = 0; i < rows; ++i) added[j * L + i] = data[i * mask.query + j * mask.key];
    }
  }
  for (int64_t j = 0; j < count; ++j) {
    float* row = out + j * L;
    if (mask.data != nullptr)
      for (int c = 0; c < C; ++c) {
        const Vec more = mask.query == 0 ? Vec(data[j * mask.key]) : Vec::loadu(added + j * L + c * W);
        (Vec::loadu(row + c * W) + more).store(row + c * W);
      }
    if (causal)
      for (int64_t i = 0; i < std::min<int64_t>(start + j - first, L); ++i) row[i] = LOWEST;
    for (int c = 0; c < C; ++c) top[c] = at::vec::maximum(top[c], Vec::loadu(row + c * W));
  }
}

// The output of `rows` queries, at most C * W, the first of which is query number `first`.
template <int C>
void attend(const float* query, int64_t query_stride, const float* keys, int64_t key_stride,
            const float* values, int64_t value_stride, float* result, int64_t result_stride,
            const Mask& mask, bool causal, int64_t first, int64_t rows, int64_t length,
            int64_t depth, float scale, float* space) {
  constexpr int L = C * W;
  float* queries = space;               // depth x L
  float* weights = queries + depth * L; // BLOCK x L
  float* added = weights + BLOCK * L;   // BLOCK x L, the mask
  float* out = added + BLOCK * L;       // depth x L
  std::fill(queries, queries + depth * L, 0.0f);
  at::vec::transpose_mxn<float>(query, query_stride, queries, L, (int)rows, (int)depth);
  for (int64_t i = 0; i < depth * L; i += W) (Vec::loadu(queries + i) * Vec(scale)).store(queries + i);
  std::fill(added, out + depth * L, 0.0f);
  Vec top[C], sum[C];
  for (int c = 0; c < C; ++c) {
    top[c] = Vec(LOWEST);
    sum[c] = Vec(0.0f);
  }
  const int64_t end = causal ? std::min(length, first + rows) : length;
  for (int64_t start = 0; start < end; start += BLOCK) {
    const int64_t count = std::min(BLOCK, end - start);
    const bool hides = causal && start + count > first + 1;
    Vec before[C], seen[C];
    for (int c = 0; c < C; ++c) before[c] = seen[c] = top[c];
    int64_t j = 0;
    for (; j + ROWS <= count; j += ROWS)
      scores<ROWS, C>(keys + (start + j) * key_stride, key_stride, queries, weights + j * L, depth, seen);
    for (; j < count; ++j)
      scores<1, C>(keys + (start + j) * key_stride, key_stride, queries, weights + j * L, depth, seen);
    if (mask.data != nullptr || hides)
      mask_scores<C>(mask, hides, first, rows, start, count, weights, added, top);
    else
      for (int c = 0; c < C; ++c) top[c] = seen[c];
    Vec part[C], base[C];
    for (int c = 0; c < C; ++c) {
      part[c] = Vec(0.0f);
      // A query that has seen no key yet: infinity less infinity is no number.
      base[c] = Vec::blendv(top[c], Vec(0.0f), top[c] == Vec(LOWEST));
    }
    for (j = 0; j < count; ++j)
      UNROLL for (int c = 0; c < C; ++c) {
        const Vec weight = (Vec::loadu(weights + j * L + c * W) - base[c]).exp_u20();
        part[c] = part[c] + weight;
        weight.store(weights + j * L + c * W);
      }
    for (int c = 0; c < C; ++c) {
      Vec shrunk = (before[c] - base[c]).exp_u20();
      sum[c] = sum[c] * shrunk + part[c];
      if (start)
        for (int64_t d = 0; d < depth; ++d) (Vec::loadu(out + d * L + c * W) * shrunk).store(out + d * L + c * W);
    }
    const float* block = values + start * value_stride;
    int64_t d = 0;
    for (; d + ROWS <= depth; d += ROWS) weigh<ROWS, C>(block + d, value_stride, weights, out + d * L, count);
    for (; d < depth; ++d) weigh<1, C>(block + d, value_stride, weights, out + d * L, count);
  }
  for (int c = 0; c < C; ++c) {
    // ATen's result of a query that is to see no key is zero.
    Vec share = Vec::blendv(Vec(1.0f) / sum[c], Vec(0.0f), sum[c] == Vec(0.0f));
    for (int64_t d = 0; d < depth; ++d) (Vec::loadu(out + d * L + c * W) * share).store(out + d * L + c * W);
  }
  at::vec::transpose_mxn<float>(out, L, result, result_stride, (int)depth, (int)rows);
}

} // namespace

extern "C" {{ export_declaration }}
{{ kernel.def_kernel(inputs=inputs, outputs={"result": result}) }}
{
  {{ kernel.maybe_codegen_profile() }}
  using namespace {{ name }}_attention;
  const int64_t batch = {{ kernel.size(query, 0) }}, heads = {{ kernel.size(query, 1) }};
  const int64_t length = {{ kernel.size(query, 2) }}, depth = {{ kernel.size(query, 3) }};
  const int64_t vectors = (length + W - 1) / W;
  const int64_t blocks = (vectors + MOST - 1) / MOST;
  const int64_t count = batch * heads * blocks;
  const float scale = {{ scale }};
  {%- if threads > 1 %}
  #pragma omp parallel num_threads({{ threads }})
  {%- endif %}
  {
    {%- if threads > 1 %}
    const int64_t all = omp_get_num_threads(), own = omp_get_thread_num();
    {%- else %}
    const int64_t all = 1, own = 0;
    {%- endif %}
    std::unique_ptr<float[]> space(new float[2 * (depth + BLOCK) * MOST * W + W]);
    // On a cache line: vectors across two of them are slow.
    float* aligned = space.get() + (W - reinterpret_cast<uintptr_t>(space.get()) / sizeof(float) % W) % W;
    for (int64_t i = count * own / all; i < count * (own + 1) / all; ++i) {
      const int64_t block = i % blocks, h = i / blocks % heads, b = i / blocks / heads;
      // Blocks of the same number of vectors, or one less.
      const int64_t start = vectors * block / blocks, end = vectors * (block + 1) / blocks;
      const int64_t first = start * W, rows = std::min<int64_t>(end * W, length) - first;
      const float* q = &{{ kernel.index(query, [0, 0, 0, 0]) }} + b * {{ stride(query, 0) }} + h * {{ stride(query, 1) }} + first * {{ stride(query, 2) }};
      const float* k = &{{ kernel.index(key, [0, 0, 0, 0]) }} + b * {{ stride(key, 0) }} + h * {{ stride(key, 1) }};
      const float* v = &{{ kernel.index(value, [0, 0, 0, 0]) }} + b * {{ stride(value, 0) }} + h * {{ stride(value, 1) }};
      float* out = {{ kernel.args.output(result.get_name()) }} + b * {{ stride(result, 0) }} + h * {{ stride(result, 1) }} + first * {{ stride(result, 2) }};
      {%- if mask %}
      const Mask added{&{{ kernel.index(mask, [0, 0, 0, 0]) }} + b * {{ stride(mask, 0) }} + h * {{ stride(mask, 1) }} + first * {{ stride(mask, 2) }}, {{ stride(mask, 2) }}, {{ stride(mask, 3) }}};
      {%- else %}
      const Mask added{nullptr, 0, 0};
      {%- endif %}
      const auto run = end - start == 1 ? attend<1> : attend<MOST>;
      run(q, {{ stride(query, 2) }}, k, {{ stride(key, 2) }}, v, {{ stride(value, 2) }}, out, {{ stride(result, 2) }},
          added, {{ "true" if causal else "false" }}, first, rows, {{ kernel.size(key, 2) }}, depth, scale, aligned);
    }
  }
}
