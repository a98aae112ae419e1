/* SPDX-License-Identifier: Apache-2.0 */
#include "transformer.h"

#include <errno.h>
#include <stdbool.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "blas.h"

#define NORM_EPSILON ((train_real)1e-5)

/* Of a layer, in this order. */
enum {
    LN1_SCALE,
    LN1_SHIFT,
    QKV,
    QKV_BIAS,
    PROJ,
    PROJ_BIAS,
    LN2_SCALE,
    LN2_SHIFT,
    UP,
    UP_BIAS,
    DOWN,
    DOWN_BIAS
};
enum { TOKEN_EMBEDDING, PLACE_EMBEDDING };                  /* of part 0 */
enum { HEAD_SCALE, HEAD_SHIFT, HEAD_WEIGHT, HEAD_TENSORS }; /* of the last */

static struct train_tensor *tensor_of(struct transformer *t, unsigned part, unsigned which)
{
    return &t->tensor[t->part_first[part] + which];
}

/* ---- making ---- */

enum first { FIRST_ZERO, FIRST_ONE, FIRST_DRAWN };

static bool make(struct transformer *t, const char *prefix, const char *what, uint64_t count,
                 enum first first, double scale, uint64_t *random)
{
    struct train_tensor *tensor = &t->tensor[t->tensors++];
    snprintf(tensor->name, sizeof tensor->name, "%s.%s", prefix, what);
    tensor->count = count;
    tensor->value = train_zeros(count);
    tensor->gradient = train_zeros(count);
    if (!tensor->value || !tensor->gradient)
        return false;
    for (uint64_t k = 0; first != FIRST_ZERO && k < count; k++)
        tensor->value[k] =
            first == FIRST_ONE
                ? 1
                : (train_real)(scale * ((double)(train_random(random) >> 40) / (1 << 23) - 1));
    return true;
}

static bool make_layer(struct transformer *t, int i, uint64_t *random)
{
    const uint64_t w = (uint64_t)t->shape.width;
    const double narrow = sqrt(3.0 / (double)w), wide = sqrt(3.0 / (4.0 * (double)w));
    const double residual = 1 / sqrt(2.0 * t->shape.layers); /* as GPT-2 begins */
    char prefix[16];
    snprintf(prefix, sizeof prefix, "layer%d", i + 1);
    return make(t, prefix, "norm1.scale", w, FIRST_ONE, 0, random) &&
           make(t, prefix, "norm1.shift", w, FIRST_ZERO, 0, random) &&
           make(t, prefix, "attention.weight", 3 * w * w, FIRST_DRAWN, narrow, random) &&
           make(t, prefix, "attention.bias", 3 * w, FIRST_ZERO, 0, random) &&
           make(t, prefix, "projection.weight", w * w, FIRST_DRAWN, narrow * residual, random) &&
           make(t, prefix, "projection.bias", w, FIRST_ZERO, 0, random) &&
           make(t, prefix, "norm2.scale", w, FIRST_ONE, 0, random) &&
           make(t, prefix, "norm2.shift", w, FIRST_ZERO, 0, random) &&
           make(t, prefix, "up.weight", 4 * w * w, FIRST_DRAWN, narrow, random) &&
           make(t, prefix, "up.bias", 4 * w, FIRST_ZERO, 0, random) &&
           make(t, prefix, "down.weight", 4 * w * w, FIRST_DRAWN, wide * residual, random) &&
           make(t, prefix, "down.bias", w, FIRST_ZERO, 0, random);
}

static bool make_tensors(struct transformer *t, uint64_t seed)
{
    const uint64_t w = (uint64_t)t->shape.width;
    uint64_t random = seed;
    t->tensor = calloc((size_t)t->shape.layers * TRANSFORMER_LAYER_TENSORS + 2 + HEAD_TENSORS,
                       sizeof *t->tensor);
    if (!t->tensor ||
        !make(t, "embedding", "byte", TRANSFORMER_BYTES * w, FIRST_DRAWN, 0.1, &random) ||
        !make(t, "embedding", "place", (uint64_t)t->shape.context * w, FIRST_DRAWN, 0.1, &random))
        return false;
    for (int i = 0; i < t->shape.layers; i++) {
        t->part_first[i + 1] = t->tensors;
        if (!make_layer(t, i, &random))
            return false;
    }
    t->parts = (unsigned)t->shape.layers + 2;
    t->part_first[t->parts - 1] = t->tensors;
    if (!make(t, "head", "norm.scale", w, FIRST_ONE, 0, &random) ||
        !make(t, "head", "norm.shift", w, FIRST_ZERO, 0, &random) ||
        !make(t, "head", "weight", TRANSFORMER_BYTES * w, FIRST_DRAWN, sqrt(3.0 / (double)w) / 4,
              &random))
        return false;
    t->part_first[t->parts] = t->tensors;
    return true;
}

/* Its buffers: each pointer with its number of elements. */
static bool make_all(train_real **const *to, const uint64_t *counts, int n)
{
    for (int i = 0; i < n; i++)
        if (!(*to[i] = train_zeros(counts[i])))
            return false;
    return true;
}

#define LAYER_BUFFERS(l)                                                                           \
    {                                                                                              \
        &(l)->in, &(l)->middle, &(l)->norm1, &(l)->norm2, &(l)->mixed, &(l)->mean1, &(l)->rstd1,   \
            &(l)->mean2, &(l)->rstd2, &(l)->qkv, &(l)->hidden, &(l)->active, &(l)->attention       \
    }
#define HEAD_BUFFERS(t)                                                                            \
    {                                                                                              \
        &(t)->out, &(t)->norm, &(t)->error, &(t)->error_norm, &(t)->mean, &(t)->rstd, &(t)->score, \
            &(t)->error_wide, &(t)->error_qkv, &(t)->error_attention                               \
    }

static bool make_buffers(struct transformer *t)
{
    const uint64_t c = (uint64_t)t->shape.context, w = (uint64_t)t->shape.width;
    const uint64_t n = (uint64_t)t->rows_max * c, heads = (uint64_t)t->shape.heads;
    t->token = calloc(n, 1);
    t->next = calloc(n, 1);
    t->layer = calloc((size_t)t->shape.layers, sizeof *t->layer);
    if (!t->token || !t->next || !t->layer)
        return false;
    for (int i = 0; i < t->shape.layers; i++) {
        train_real **const to[] = LAYER_BUFFERS(&t->layer[i]);
        const uint64_t counts[] = {n * w, n * w,     n * w,     n * w,     n * w,        n, n, n,
                                   n,     3 * n * w, 4 * n * w, 4 * n * w, n * heads * c};
        if (!make_all(to, counts, 13))
            return false;
    }
    train_real **const to[] = HEAD_BUFFERS(t);
    const uint64_t counts[] = {n * w,     n * w,     n * w, n * w, n, n, n * TRANSFORMER_BYTES,
                               4 * n * w, 3 * n * w, c * c};
    return make_all(to, counts, 10);
}

int transformer_init(struct transformer *t, const struct transformer_shape *shape, int rows,
                     uint64_t seed)
{
    *t = (struct transformer){.shape = *shape, .rows_max = rows};
    if (make_tensors(t, seed) && make_buffers(t))
        return 0;
    transformer_release(t);
    return -ENOMEM;
}

void transformer_release(struct transformer *t)
{
    for (unsigned i = 0; t->tensor && i < t->tensors; i++) {
        free(t->tensor[i].value);
        free(t->tensor[i].gradient);
    }
    for (int i = 0; t->layer && i < t->shape.layers; i++) {
        train_real **const of[] = LAYER_BUFFERS(&t->layer[i]);
        for (int k = 0; k < 13; k++)
            free(*of[k]);
    }
    train_real **const of[] = HEAD_BUFFERS(t);
    for (int k = 0; k < 10; k++)
        free(*of[k]);
    free(t->tensor);
    free(t->layer);
    free(t->token);
    free(t->next);
    *t = (struct transformer){0};
}

void transformer_set_row(struct transformer *t, int row, const uint8_t *text)
{
    size_t context = (size_t)t->shape.context;
    memcpy(t->token + (size_t)row * context, text, context);
    memcpy(t->next + (size_t)row * context, text + 1, context);
}

/* ---- pieces: each forward, and its backward, which adds to gradients and sets errors ---- */

/* out (n x to) = in (n x from) * weight^T + bias */
static void linear(train_real *out, const train_real *in, const struct train_tensor *weight,
                   const struct train_tensor *bias, int n, int from, int to)
{
    for (int i = 0; bias && i < n; i++)
        memcpy(out + (long)i * to, bias->value, (size_t)to * sizeof *out);
    blas_gemm(false, true, n, to, from, 1, in, from, weight->value, from, bias ? 1 : 0, out, to);
}

static void linear_backward(train_real *in_error, const train_real *out_error, const train_real *in,
                            struct train_tensor *weight, struct train_tensor *bias, int n, int from,
                            int to)
{
    blas_gemm(true, false, to, from, n, 1, out_error, to, in, from, 1, weight->gradient, from);
    for (int i = 0; bias && i < n; i++)
        for (int k = 0; k < to; k++)
            bias->gradient[k] += out_error[(long)i * to + k];
    blas_gemm(false, false, n, from, to, 1, out_error, to, weight->value, from, 0, in_error, from);
}

static void norm(train_real *out, train_real *mean, train_real *rstd, const train_real *in,
                 const struct train_tensor *scale, const struct train_tensor *shift, int n, int w)
{
    for (int i = 0; i < n; i++, in += w, out += w) {
        train_real sum = 0, squares = 0;
        for (int k = 0; k < w; k++)
            sum += in[k];
        mean[i] = sum / (train_real)w;
        for (int k = 0; k < w; k++)
            squares += (in[k] - mean[i]) * (in[k] - mean[i]);
        rstd[i] = 1 / sqrt(squares / (train_real)w + NORM_EPSILON);
        for (int k = 0; k < w; k++)
            out[k] = (in[k] - mean[i]) * rstd[i] * scale->value[k] + shift->value[k];
    }
}

/* Adds to in_error: the residual's error is there already. */
static void norm_backward(train_real *in_error, const train_real *out_error, const train_real *in,
                          const train_real *mean, const train_real *rstd,
                          struct train_tensor *scale, struct train_tensor *shift, int n, int w)
{
    for (int i = 0; i < n; i++, in += w, out_error += w, in_error += w) {
        train_real sum = 0, sum_hat = 0;
        for (int k = 0; k < w; k++) {
            train_real hat = (in[k] - mean[i]) * rstd[i], error = out_error[k] * scale->value[k];
            scale->gradient[k] += out_error[k] * hat;
            shift->gradient[k] += out_error[k];
            sum += error;
            sum_hat += error * hat;
        }
        sum /= (train_real)w;
        sum_hat /= (train_real)w;
        for (int k = 0; k < w; k++) {
            train_real hat = (in[k] - mean[i]) * rstd[i];
            in_error[k] += (out_error[k] * scale->value[k] - sum - hat * sum_hat) * rstd[i];
        }
    }
}

/* Softmax of the first `n` of a row, the rest 0: what comes later must not be seen. */
static void softmax(train_real *row, int n, int length)
{
    train_real highest = row[0], sum = 0;
    for (int k = 1; k < n; k++)
        highest = row[k] > highest ? row[k] : highest;
    for (int k = 0; k < n; k++)
        sum += row[k] = exp(row[k] - highest);
    for (int k = 0; k < n; k++)
        row[k] /= sum;
    memset(row + n, 0, (size_t)(length - n) * sizeof *row);
}

/* Query, key and value of head `h` of row `b`, and its place in mixed and attention. */
struct head {
    train_real *q, *k, *v, *mixed, *attention;
};

static struct head head_of(const struct transformer *t, train_real *qkv, train_real *mixed,
                           train_real *attention, int b, int h)
{
    const long c = t->shape.context, w = t->shape.width, of_head = w / t->shape.heads;
    train_real *q = qkv + b * c * 3 * w + h * of_head;
    return (struct head){q, q + w, q + 2 * w, mixed + b * c * w + h * of_head,
                         attention + ((long)b * t->shape.heads + h) * c * c};
}

static void attention(struct transformer *t, struct transformer_layer *l)
{
    const int c = t->shape.context, w = t->shape.width, of_head = w / t->shape.heads;
    const train_real scale = 1 / sqrt((train_real)of_head);
    for (int b = 0; b < t->rows; b++)
        for (int h = 0; h < t->shape.heads; h++) {
            struct head head = head_of(t, l->qkv, l->mixed, l->attention, b, h);
            blas_gemm(false, true, c, c, of_head, scale, head.q, 3 * w, head.k, 3 * w, 0,
                      head.attention, c);
            for (int i = 0; i < c; i++)
                softmax(head.attention + (long)i * c, i + 1, c);
            blas_gemm(false, false, c, of_head, c, 1, head.attention, c, head.v, 3 * w, 0,
                      head.mixed, w);
        }
}

static void attention_backward(struct transformer *t, struct transformer_layer *l,
                               train_real *qkv_error, train_real *mixed_error)
{
    const int c = t->shape.context, w = t->shape.width, of_head = w / t->shape.heads;
    const train_real scale = 1 / sqrt((train_real)of_head);
    train_real *error = t->error_attention;
    for (int b = 0; b < t->rows; b++)
        for (int h = 0; h < t->shape.heads; h++) {
            struct head head = head_of(t, l->qkv, l->mixed, l->attention, b, h);
            struct head of = head_of(t, qkv_error, mixed_error, l->attention, b, h);
            blas_gemm(true, false, c, of_head, c, 1, head.attention, c, of.mixed, w, 0, of.v,
                      3 * w);
            blas_gemm(false, true, c, c, of_head, 1, of.mixed, w, head.v, 3 * w, 0, error, c);
            for (int i = 0; i < c; i++) {
                const train_real *p = head.attention + (long)i * c;
                train_real *e = error + (long)i * c, sum = 0;
                for (int k = 0; k <= i; k++)
                    sum += p[k] * e[k];
                for (int k = 0; k < c; k++)
                    e[k] = k <= i ? p[k] * (e[k] - sum) : 0;
            }
            blas_gemm(false, false, c, of_head, c, scale, error, c, head.k, 3 * w, 0, of.q, 3 * w);
            blas_gemm(true, false, c, of_head, c, scale, error, c, head.q, 3 * w, 0, of.k, 3 * w);
        }
}

/* GELU by its tanh form (Hendrycks and Gimpel 2016). */
#define GELU_A ((train_real)0.7978845608028654) /* sqrt(2 / pi) */
#define GELU_B ((train_real)0.044715)

static void gelu(train_real *out, const train_real *in, long n)
{
    for (long k = 0; k < n; k++) {
        const train_real x = in[k];
        out[k] = x * (1 + tanh(GELU_A * (x + GELU_B * x * x * x))) / 2;
    }
}

static void gelu_backward(train_real *error, const train_real *in, long n)
{
    for (long k = 0; k < n; k++) {
        const train_real x = in[k], th = tanh(GELU_A * (x + GELU_B * x * x * x));
        error[k] *= (1 + th + x * (1 - th * th) * GELU_A * (1 + 3 * GELU_B * x * x)) / 2;
    }
}

static void add(train_real *restrict to, const train_real *restrict from, long n)
{
    for (long k = 0; k < n; k++)
        to[k] += from[k];
}

/* ---- forward ---- */

static void embed(struct transformer *t, train_real *out)
{
    const int c = t->shape.context, w = t->shape.width;
    const train_real *byte = tensor_of(t, 0, TOKEN_EMBEDDING)->value;
    const train_real *place = tensor_of(t, 0, PLACE_EMBEDDING)->value;
    for (long i = 0; i < (long)t->rows * c; i++)
        for (int k = 0; k < w; k++)
            out[i * w + k] = byte[(long)t->token[i] * w + k] + place[(i % c) * w + k];
}

static void layer_forward(struct transformer *t, int i, train_real *out)
{
    struct transformer_layer *l = &t->layer[i];
    struct train_tensor *p = tensor_of(t, (unsigned)i + 1, 0);
    const int w = t->shape.width, n = t->rows * t->shape.context;
    norm(l->norm1, l->mean1, l->rstd1, l->in, &p[LN1_SCALE], &p[LN1_SHIFT], n, w);
    linear(l->qkv, l->norm1, &p[QKV], &p[QKV_BIAS], n, w, 3 * w);
    attention(t, l);
    linear(l->middle, l->mixed, &p[PROJ], &p[PROJ_BIAS], n, w, w);
    add(l->middle, l->in, (long)n * w);
    norm(l->norm2, l->mean2, l->rstd2, l->middle, &p[LN2_SCALE], &p[LN2_SHIFT], n, w);
    linear(l->hidden, l->norm2, &p[UP], &p[UP_BIAS], n, w, 4 * w);
    gelu(l->active, l->hidden, 4L * n * w);
    linear(out, l->active, &p[DOWN], &p[DOWN_BIAS], n, 4 * w, w);
    add(out, l->middle, (long)n * w);
}

double transformer_forward(struct transformer *t, int rows)
{
    const int w = t->shape.width, n = rows * t->shape.context, last = t->shape.layers;
    t->rows = rows;
    if (rows == 0)
        return 0;
    embed(t, last > 0 ? t->layer[0].in : t->out);
    for (int i = 0; i < last; i++)
        layer_forward(t, i, i + 1 < last ? t->layer[i + 1].in : t->out);
    struct train_tensor *head = tensor_of(t, t->parts - 1, 0);
    norm(t->norm, t->mean, t->rstd, t->out, &head[HEAD_SCALE], &head[HEAD_SHIFT], n, w);
    linear(t->score, t->norm, &head[HEAD_WEIGHT], NULL, n, w, TRANSFORMER_BYTES);
    double loss = 0;
    for (long i = 0; i < n; i++) {
        train_real *score = t->score + i * TRANSFORMER_BYTES;
        softmax(score, TRANSFORMER_BYTES, TRANSFORMER_BYTES);
        train_real p = score[t->next[i]];
        loss -= log((double)(p > (train_real)1e-30 ? p : (train_real)1e-30));
    }
    return loss / n;
}

/* ---- backward: t->error is the error of a part's output, and becomes that of its input ---- */

static void head_backward(struct transformer *t)
{
    struct train_tensor *head = tensor_of(t, t->parts - 1, 0);
    const int w = t->shape.width, n = t->rows * t->shape.context;
    for (long i = 0; i < n; i++) {
        train_real *score = t->score + i * TRANSFORMER_BYTES;
        score[t->next[i]] -= 1;
        for (int k = 0; k < TRANSFORMER_BYTES; k++)
            score[k] /= (train_real)t->shape.context;
    }
    linear_backward(t->error_norm, t->score, t->norm, &head[HEAD_WEIGHT], NULL, n, w,
                    TRANSFORMER_BYTES);
    memset(t->error, 0, (size_t)n * (size_t)w * sizeof *t->error);
    norm_backward(t->error, t->error_norm, t->out, t->mean, t->rstd, &head[HEAD_SCALE],
                  &head[HEAD_SHIFT], n, w);
}

static void layer_backward(struct transformer *t, unsigned part)
{
    struct transformer_layer *l = &t->layer[part - 1];
    struct train_tensor *p = tensor_of(t, part, 0);
    const int w = t->shape.width, n = t->rows * t->shape.context;
    linear_backward(t->error_wide, t->error, l->active, &p[DOWN], &p[DOWN_BIAS], n, 4 * w, w);
    gelu_backward(t->error_wide, l->hidden, 4L * n * w);
    linear_backward(t->error_norm, t->error_wide, l->norm2, &p[UP], &p[UP_BIAS], n, w, 4 * w);
    norm_backward(t->error, t->error_norm, l->middle, l->mean2, l->rstd2, &p[LN2_SCALE],
                  &p[LN2_SHIFT], n, w);
    linear_backward(t->error_norm, t->error, l->mixed, &p[PROJ], &p[PROJ_BIAS], n, w, w);
    attention_backward(t, l, t->error_qkv, t->error_norm);
    linear_backward(t->error_norm, t->error_qkv, l->norm1, &p[QKV], &p[QKV_BIAS], n, w, 3 * w);
    norm_backward(t->error, t->error_norm, l->in, l->mean1, l->rstd1, &p[LN1_SCALE], &p[LN1_SHIFT],
                  n, w);
}

static void embedding_backward(struct transformer *t)
{
    const int c = t->shape.context, w = t->shape.width;
    train_real *byte = tensor_of(t, 0, TOKEN_EMBEDDING)->gradient;
    train_real *place = tensor_of(t, 0, PLACE_EMBEDDING)->gradient;
    for (long i = 0; i < (long)t->rows * c; i++) {
        add(byte + (long)t->token[i] * w, t->error + i * w, w);
        add(place + (i % c) * w, t->error + i * w, w);
    }
}

void transformer_backward(struct transformer *t, unsigned part)
{
    if (t->rows == 0)
        return;
    if (part == t->parts - 1)
        head_backward(t);
    else if (part > 0)
        layer_backward(t, part);
    else
        embedding_backward(t);
}
