/* The C tables of a compute backend (kind "backend"). Compiles as C11 and C++20.
 *
 * Rules
 *   - Every op and copy is enqueued on a stream and may run later; argument structs are copied at the call,
 *     tensors they point to are not. Ops of one stream run in order. Core never assumes that an enqueued op is done.
 *   - Any host thread may call; calls for one stream come from one thread at a time.
 *   - No function throws. A bad argument is NSP_ERR_ARGUMENT with a text in last_error(device), nothing is enqueued.
 *   - Every op's argument struct is { uint64_t size; nsp_tensor t1, t2, ...; scalars }: the tensors come first and
 *     contiguous, so a wrapper (tests/support/fake_device) can translate every pointer from NSP_OP_LIST alone.
 *   - An absent optional tensor has data == NULL and rank == 0. An op on zero elements is a success that does nothing.
 *   - Unless an op says otherwise: tensors are dense and row-major in the last dimension (stride 1), outer strides are
 *     free; sums run in fp32 or better in an order that depends on shapes only, never on the number of threads, so equal
 *     input gives equal bits.
 *   - Ops marked [bits] give the same bits on every backend: IEEE add, multiply, divide, square root in the written
 *     order, no contraction to FMA, denormals flushed to zero as operands and as results (cast keeps them).
 * Dtypes: all floating tensors of a call are fp32, or all are bf16 (supports() says which an op has), except that
 *   - statistics (mean, rstd, lse, losses) and gradients of parameters (dtable, dposition_table, dweight, dbias) are
 *     always fp32; sum and sum_of_squares give fp64;
 *   - matmul may write fp32 from bf16 a and b; accumulate is only into fp32; bias has the dtype of a and b;
 *   - axpy may add bf16 x to fp32 y; copy takes any dtype; cast goes from one to the other;
 *   - adamw and sgd are fp32 only: they work on master weights.
 *   Any other mixture is NSP_ERR_ARGUMENT. A bf16 op widens what it reads, computes in fp32 (sums as above) and rounds
 *   once, to nearest, ties to even, when it stores; a NaN becomes a quiet NaN. Where it adds to what is there (dx), it
 *   adds in fp32 and rounds once. So the bits of a [bits] op on bf16 are those of the fp32 op, rounded.
 * Letters: B batch, T query length, S key length, H query heads, G key/value heads (H % G == 0), D head size,
 *          N rows, C channels, V vocabulary.
 */
#ifndef NSP_BACKEND_H
#define NSP_BACKEND_H

#include "nsp/abi.h"

typedef struct nsp_device nsp_device;
typedef struct nsp_stream nsp_stream;
typedef struct nsp_event nsp_event;

typedef enum nsp_memory_kind { NSP_MEMORY_DEVICE = 0, NSP_MEMORY_PINNED = 1 /* host memory that copies reach fast */ } nsp_memory_kind;

typedef struct nsp_device_info {
  uint64_t size;
  char name[128];             /* "AMD EPYC (2 threads)" */
  char kind[32];              /* "cpu", "cuda" */
  int32_t host_addressable;   /* 1: the host may read and write device memory when no op is running on it */
  int32_t threads;            /* compute threads; 0 where that means nothing */
  uint64_t memory_total;      /* bytes */
  uint64_t memory_free;       /* bytes, now */
} nsp_device_info;

typedef struct nsp_device_config {
  uint64_t size;
  int32_t threads;  /* compute threads a CPU device may use, >= 1 */
  int32_t reserved; /* 0 */
} nsp_device_config;

/* ---- ops: (name, number of tensors) ------------------------------------------------------------------- */
#define NSP_OP_LIST(X)          \
  X(embedding_forward, 5)       \
  X(embedding_backward, 5)      \
  X(layernorm_forward, 6)       \
  X(layernorm_backward, 8)      \
  X(rmsnorm_forward, 4)         \
  X(rmsnorm_backward, 6)        \
  X(matmul, 4)                  \
  X(bias_gradient, 2)           \
  X(rope, 3)                    \
  X(attention_forward, 6)       \
  X(attention_backward, 10)     \
  X(gelu_forward, 2)            \
  X(gelu_backward, 3)           \
  X(swiglu_forward, 3)          \
  X(swiglu_backward, 5)         \
  X(classifier, 3)              \
  X(copy, 2)                    \
  X(cast, 2)                    \
  X(scale, 1)                   \
  X(axpy, 2)                    \
  X(lerp, 4)                    \
  X(sum, 2)                     \
  X(sum_of_squares, 2)          \
  X(all_finite, 2)              \
  X(random_fill, 1)             \
  X(adamw, 4)                   \
  X(sgd, 3)

typedef enum nsp_op {
#define NSP_OP_ENUM(name, tensors) NSP_OP_##name,
  NSP_OP_LIST(NSP_OP_ENUM)
#undef NSP_OP_ENUM
      NSP_OP_COUNT
} nsp_op;

/* out[n,:] = table[tokens[n],:] (+ position_table[positions[n],:] if both are given). */
typedef struct nsp_embedding_forward_args {
  uint64_t size;
  nsp_tensor out;            /* [N,C] */
  nsp_tensor tokens;         /* [N] i32, 0 <= token < V */
  nsp_tensor table;          /* [V,C] */
  nsp_tensor positions;      /* [N] i32, optional */
  nsp_tensor position_table; /* [P,C], optional */
} nsp_embedding_forward_args;

/* dtable[tokens[n],:] += dout[n,:] and the same for positions, added in the order of n (no atomics). */
typedef struct nsp_embedding_backward_args {
  uint64_t size;
  nsp_tensor dout;            /* [N,C] */
  nsp_tensor tokens;          /* [N] i32 */
  nsp_tensor dtable;          /* [V,C], += ; optional (then only positions) */
  nsp_tensor positions;       /* [N] i32, optional */
  nsp_tensor dposition_table; /* [P,C], +=, optional */
} nsp_embedding_backward_args;

/* out = (x - mean) * rstd * weight + bias over the last dimension; mean and rstd are kept for backward.
 * Ba et al., "Layer Normalization", arXiv 1607.06450. Variance is the biased one; rstd = 1/sqrt(var + eps). */
typedef struct nsp_layernorm_forward_args {
  uint64_t size;
  nsp_tensor out;    /* [N,C] */
  nsp_tensor x;      /* [N,C] */
  nsp_tensor weight, bias; /* [C] */
  nsp_tensor mean, rstd;   /* [N] */
  float eps;
} nsp_layernorm_forward_args;

/* dx (+)= gradient; dweight, dbias += gradient. dx may be dout. */
typedef struct nsp_layernorm_backward_args {
  uint64_t size;
  nsp_tensor dx;      /* [N,C] */
  nsp_tensor dweight, dbias; /* [C], += */
  nsp_tensor dout, x;        /* [N,C] */
  nsp_tensor weight;         /* [C] */
  nsp_tensor mean, rstd;     /* [N] */
  int32_t accumulate_dx;
} nsp_layernorm_backward_args;

/* out = x * rstd * weight, rstd = 1/sqrt(mean(x^2) + eps). Zhang and Sennrich, arXiv 1910.07467. */
typedef struct nsp_rmsnorm_forward_args {
  uint64_t size;
  nsp_tensor out;    /* [N,C] */
  nsp_tensor x;      /* [N,C] */
  nsp_tensor weight; /* [C] */
  nsp_tensor rstd;   /* [N] */
  float eps;
} nsp_rmsnorm_forward_args;

typedef struct nsp_rmsnorm_backward_args {
  uint64_t size;
  nsp_tensor dx;      /* [N,C] */
  nsp_tensor dweight; /* [C], += */
  nsp_tensor dout;    /* [N,C] */
  nsp_tensor x;       /* [N,C] */
  nsp_tensor weight;  /* [C] */
  nsp_tensor rstd;    /* [N] */
  int32_t accumulate_dx;
} nsp_rmsnorm_backward_args;

/* out[M,N] (+)= op(a) op(b) + bias. op transposes if asked: a is [M,K] or, transposed, [K,M]; b is [K,N] or [N,K].
 * K == 0: out is set to the bias (or 0), or left alone when accumulating. */
typedef struct nsp_matmul_args {
  uint64_t size;
  nsp_tensor out;  /* [M,N] */
  nsp_tensor a;
  nsp_tensor b;
  nsp_tensor bias; /* [N], optional; not with accumulate */
  int32_t transpose_a, transpose_b;
  int32_t accumulate;
} nsp_matmul_args;

/* dbias[c] += sum_n dout[n,c] */
typedef struct nsp_bias_gradient_args {
  uint64_t size;
  nsp_tensor dbias; /* [C] */
  nsp_tensor dout;  /* [N,C] */
} nsp_bias_gradient_args;

/* Rotary position embedding, half-rotation layout: pairs (d, d + D/2), angle = position * theta^(-2d/D).
 * Su et al., arXiv 2104.09864. out may be x. inverse: the opposite rotation (= backward). D even. */
typedef struct nsp_rope_args {
  uint64_t size;
  nsp_tensor out;       /* [B,T,H,D] */
  nsp_tensor x;         /* [B,T,H,D] */
  nsp_tensor positions; /* [B,T] i32 */
  float theta;
  int32_t inverse;
} nsp_rope_args;

/* out = softmax(scale * q k^T + mask) v, per query head; head h reads key/value head h / (H/G).
 * Query t has global position query_offset + t; key s has global position s. Key s is seen iff
 *   s <= query_offset + t (if causal), s > query_offset + t - window (if window > 0),
 *   s >= document_start[b,t] (if given).
 * A query that sees no key gives out = 0 and lse = -inf. Vaswani et al., arXiv 1706.03762. */
typedef struct nsp_attention_forward_args {
  uint64_t size;
  nsp_tensor out;            /* [B,T,H,D] */
  nsp_tensor lse;            /* [B,H,T], natural log of the sum of exponentials */
  nsp_tensor q;              /* [B,T,H,D] */
  nsp_tensor k, v;           /* [B,S,G,D] */
  nsp_tensor document_start; /* [B,T] i32, optional: first key that query t may see */
  float scale;
  int32_t causal;
  int64_t query_offset;
  int64_t window; /* 0 = no limit */
} nsp_attention_forward_args;

/* Overwrites dq, dk, dv. Dao et al., arXiv 2205.14135, algorithm 4 (delta = rowsum(dout * out)). */
typedef struct nsp_attention_backward_args {
  uint64_t size;
  nsp_tensor dq;             /* [B,T,H,D] */
  nsp_tensor dk, dv;         /* [B,S,G,D] */
  nsp_tensor dout;           /* [B,T,H,D] */
  nsp_tensor q;              /* [B,T,H,D] */
  nsp_tensor k, v;           /* [B,S,G,D] */
  nsp_tensor out;            /* [B,T,H,D] */
  nsp_tensor lse;            /* [B,H,T] */
  nsp_tensor document_start; /* [B,T] i32, optional */
  float scale;
  int32_t causal;
  int64_t query_offset;
  int64_t window;
} nsp_attention_backward_args;

/* GELU, tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Hendrycks and Gimpel, arXiv 1606.08415. */
typedef struct nsp_gelu_forward_args {
  uint64_t size;
  nsp_tensor out; /* [N,C] */
  nsp_tensor x;   /* [N,C] */
} nsp_gelu_forward_args;

typedef struct nsp_gelu_backward_args {
  uint64_t size;
  nsp_tensor dx;   /* [N,C], overwritten; may be dout */
  nsp_tensor dout; /* [N,C] */
  nsp_tensor x;    /* [N,C] */
} nsp_gelu_backward_args;

/* out = silu(gate) * up. Shazeer, arXiv 2002.05202. */
typedef struct nsp_swiglu_forward_args {
  uint64_t size;
  nsp_tensor out;  /* [N,C] */
  nsp_tensor gate; /* [N,C] */
  nsp_tensor up;   /* [N,C] */
} nsp_swiglu_forward_args;

typedef struct nsp_swiglu_backward_args {
  uint64_t size;
  nsp_tensor dgate, dup;     /* [N,C], overwritten */
  nsp_tensor dout, gate, up; /* [N,C] */
} nsp_swiglu_backward_args;

/* Softmax + cross-entropy (+ gradient in place) over the first `vocabulary` columns; further columns are padding that
 * never enters the softmax and whose gradient is 0. losses[n] = lse(logits[n]) - logits[n,target]; a target < 0 is not
 * counted: loss 0, gradient 0. With write_gradient, logits[n,v] = (softmax - onehot(target)) * gradient_scale. */
typedef struct nsp_classifier_args {
  uint64_t size;
  nsp_tensor logits;  /* [N,Vpadded] */
  nsp_tensor targets; /* [N] i32, target < vocabulary */
  nsp_tensor losses;  /* [N] */
  int64_t vocabulary;
  float gradient_scale;
  int32_t write_gradient;
} nsp_classifier_args;

/* out = x element by element, any strides (the last too), same sizes and dtype; packs and unpacks. No overlap. */
typedef struct nsp_copy_args {
  uint64_t size;
  nsp_tensor out;
  nsp_tensor x;
} nsp_copy_args;

/* out = x in another dtype (f32 <-> bf16, round to nearest even). Dense, 1-D. [bits] */
typedef struct nsp_cast_args {
  uint64_t size;
  nsp_tensor out;
  nsp_tensor x;
} nsp_cast_args;

/* x *= a. 1-D. [bits] */
typedef struct nsp_scale_args {
  uint64_t size;
  nsp_tensor x;
  float a;
} nsp_scale_args;

/* y = y + a * x. 1-D. [bits] */
typedef struct nsp_axpy_args {
  uint64_t size;
  nsp_tensor y;
  nsp_tensor x;
  float a;
} nsp_axpy_args;

/* out = base + weight * (x - origin). 1-D; out may be base or x. With base == origin the ordinary interpolation; a chain
 * over replicas, base = out, origin = x_0, gives x_0 + sum_m w_m (x_m - x_0), which keeps identical replicas identical. [bits] */
typedef struct nsp_lerp_args {
  uint64_t size;
  nsp_tensor out;
  nsp_tensor base;
  nsp_tensor x;
  nsp_tensor origin;
  float weight;
} nsp_lerp_args;

/* out[0] (+)= sum x, in f64, blockwise in an order that depends on the length alone. */
typedef struct nsp_sum_args {
  uint64_t size;
  nsp_tensor out; /* [1] f64 */
  nsp_tensor x;   /* [n] */
  int32_t accumulate;
} nsp_sum_args;

/* out[0] (+)= sum x^2, in f64. */
typedef struct nsp_sum_of_squares_args {
  uint64_t size;
  nsp_tensor out; /* [1] f64 */
  nsp_tensor x;   /* [n] */
  int32_t accumulate;
} nsp_sum_of_squares_args;

/* bad[0] = 1 if any x is NaN or infinite, else left as it is (the caller sets it to 0 first). */
typedef struct nsp_all_finite_args {
  uint64_t size;
  nsp_tensor bad; /* [1] i32 */
  nsp_tensor x;   /* [n] */
} nsp_all_finite_args;

/* x[i] = function of (seed, stream, offset + i) alone: Philox4x32-10 (Salmon et al., SC11), counter
 * {lo, hi of (offset+i)/4, lo, hi of stream}, key = lo, hi of seed. distribution 0: uniform in [0,1), u = (word >> 8) * 2^-24;
 * 1: normal(0,1) by Box-Muller on word pairs. x = low + scale * value. */
typedef struct nsp_random_fill_args {
  uint64_t size;
  nsp_tensor x; /* [n] */
  uint64_t seed, stream, offset;
  float low, scale;
  int32_t distribution;
} nsp_random_fill_args;

/* AdamW, Loshchilov and Hutter, arXiv 1711.05101. [bits], in this order, all in fp32:
 *   g' = g * gradient_scale; m = beta1 * m + (1 - beta1) * g'; v = beta2 * v + ((1 - beta2) * g') * g';
 *   w = w - lr * ((m * correction1) / (sqrt(v * correction2) + eps) + weight_decay * w)
 * one_minus_beta* and correction* = 1/(1 - beta^t) are computed on the host in double and rounded once. */
typedef struct nsp_adamw_args {
  uint64_t size;
  nsp_tensor weight;   /* [n] */
  nsp_tensor gradient; /* [n], sums */
  nsp_tensor moment1;  /* [n] */
  nsp_tensor moment2;  /* [n] */
  float lr, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, weight_decay;
  float correction1, correction2, gradient_scale;
} nsp_adamw_args;

/* SGD with momentum: g' = g * gradient_scale + weight_decay * w; b = momentum * b + g';
 * w = w - lr * (nesterov ? g' + momentum * b : b). Without a momentum tensor, b = g'. [bits] */
typedef struct nsp_sgd_args {
  uint64_t size;
  nsp_tensor weight;   /* [n] */
  nsp_tensor gradient; /* [n], sums */
  nsp_tensor momentum; /* [n], optional */
  float lr, momentum_factor, weight_decay, gradient_scale;
  int32_t nesterov;
} nsp_sgd_args;

/* ---- tables ------------------------------------------------------------------------------------------- */

typedef struct nsp_op_table {
  uint64_t size; /* sizeof in the module: an op whose pointer lies beyond it, or is NULL, is not there */
#define NSP_OP_MEMBER(name, tensors) nsp_status (*name)(nsp_stream *stream, const nsp_##name##_args *args);
  NSP_OP_LIST(NSP_OP_MEMBER)
#undef NSP_OP_MEMBER
} nsp_op_table;

typedef struct nsp_backend {
  uint64_t size;
  uint32_t abi_major, abi_minor;
  const nsp_op_table *ops;
  int32_t (*device_count)(void);
  nsp_status (*open)(int32_t index, const nsp_device_config *config, nsp_device **out);
  void (*close)(nsp_device *device); /* waits for its streams */
  nsp_status (*info)(nsp_device *device, nsp_device_info *out);
  /* Text of the last failure on this device, or of open when device is NULL; valid until the next call on it. */
  const char *(*last_error)(nsp_device *device);
  int32_t (*supports)(nsp_device *device, int32_t op, int32_t dtype);
  /* Zeroed? No. Aligned to 256 bytes at least. bytes == 0 gives a valid pointer. */
  nsp_status (*allocate)(nsp_device *device, uint64_t bytes, int32_t kind, void **out);
  void (*release)(nsp_device *device, void *pointer, int32_t kind);
  nsp_status (*stream_create)(nsp_device *device, nsp_stream **out);
  void (*stream_destroy)(nsp_stream *stream); /* waits for what is queued */
  nsp_status (*event_create)(nsp_device *device, nsp_event **out);
  void (*event_destroy)(nsp_event *event); /* allowed while recorded work is pending */
  nsp_status (*event_record)(nsp_stream *stream, nsp_event *event); /* a later record replaces an earlier one */
  nsp_status (*stream_wait)(nsp_stream *stream, nsp_event *event);  /* later ops of the stream wait for the newest record */
  /* 1: the newest record is reached (or there is none). 0: not yet. < 0: a failure, see last_error. Never blocks. */
  int32_t (*event_query)(nsp_event *event);
  /* Sleeps until the event is reached or the time is over; the same result as event_query. Takes no core. */
  int32_t (*event_wait)(nsp_event *event, int64_t microseconds);
  nsp_status (*copy)(nsp_stream *stream, void *destination, const void *source, uint64_t bytes); /* any direction */
  nsp_status (*fill)(nsp_stream *stream, void *destination, int32_t byte, uint64_t bytes);
  void *(*native_handle)(nsp_stream *stream); /* optional: the vendor's stream */
} nsp_backend;

#endif
