/*
 * Collectives that are special cases of the sum over all ranks: what a rank does not contribute is
 * zero. Bits that are to arrive as they are travel as int32, whose sums are exact.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/calls.h"

static size_t size_of(enum gradwire_type type)
{
    return type == GRADWIRE_FLOAT16 || type == GRADWIRE_BFLOAT16 ? 2 : 4;
}

/* Checks what gradwire_allreduce() does not see, or sees too late. */
static int check(const gradwire *job, const void *in, const void *out, size_t count,
                 enum gradwire_type type)
{
    int code = gw_calls_check(job);
    if (code)
        return code;
    if ((uint32_t)type > GRADWIRE_INT32)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "type %d is not known", type);
    if (count && (!in || !out))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "in or out is NULL");
    if (count > PTRDIFF_MAX / sizeof(int32_t) / (size_t)gradwire_world(job))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "count is %zu: so much fits no memory", count);
    return GRADWIRE_OK;
}

static int check_root(const gradwire *job, int root)
{
    if (root < 0 || root >= gradwire_world(job))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "root is %d: 0 to %d", root,
                             gradwire_world(job) - 1);
    return GRADWIRE_OK;
}

/* Makes room for `bytes` of zeroes in int32, at least one; the caller frees it. */
static int take_words(size_t bytes, int32_t **words)
{
    *words = calloc(bytes / sizeof(int32_t) + 1, sizeof(int32_t));
    return *words ? GRADWIRE_OK : gw_calls_fail(GRADWIRE_ERR_NO_MEMORY, "out of memory");
}

/* Sums `bytes` in int32; what is behind them in the last one is zero on all ranks. */
static int share(gradwire *job, int32_t *words, size_t bytes)
{
    size_t count = (bytes + sizeof(int32_t) - 1) / sizeof(int32_t);
    return gradwire_allreduce(job, words, words, count, GRADWIRE_INT32, GRADWIRE_SUM);
}

int gradwire_reduce(gradwire *job, const void *in, void *out, size_t count, enum gradwire_type type,
                    enum gradwire_op op, int root)
{
    int32_t *unused;
    int code = check(job, in, in, count, type);
    if (!code)
        code = check_root(job, root);
    if (code)
        return code;
    if (root == gradwire_rank(job))
        return gradwire_allreduce(job, in, out, count, type, op);
    code = take_words(count * size_of(type), &unused);
    if (code)
        return code;
    code = gradwire_allreduce(job, in, unused, count, type, op);
    free(unused);
    return code;
}

int gradwire_broadcast(gradwire *job, void *data, size_t count, enum gradwire_type type, int root)
{
    int32_t *all;
    size_t bytes = count * size_of(type);
    int code = check(job, data, data, count, type);
    if (!code)
        code = check_root(job, root);
    if (!code)
        code = take_words(bytes, &all);
    if (code)
        return code;
    if (root == gradwire_rank(job))
        memcpy(all, data, bytes);
    code = share(job, all, bytes);
    if (code == GRADWIRE_OK)
        memcpy(data, all, bytes);
    free(all);
    return code;
}

int gradwire_allgather(gradwire *job, const void *in, void *out, size_t count,
                       enum gradwire_type type)
{
    int32_t *all;
    int code = check(job, in, out, count, type);
    if (code)
        return code;
    size_t bytes = count * size_of(type), total = bytes * (size_t)gradwire_world(job);
    code = take_words(total, &all);
    if (code)
        return code;
    memcpy((char *)all + bytes * (size_t)gradwire_rank(job), in, bytes);
    code = share(job, all, total);
    if (code == GRADWIRE_OK)
        memcpy(out, all, total);
    free(all);
    return code;
}

int gradwire_reduce_scatter(gradwire *job, const void *in, void *out, size_t count,
                            enum gradwire_type type, enum gradwire_op op)
{
    int32_t *all;
    int code = check(job, in, out, count, type);
    if (code)
        return code;
    size_t bytes = count * size_of(type), world = (size_t)gradwire_world(job);
    code = take_words(bytes * world, &all);
    if (code)
        return code;
    code = gradwire_allreduce(job, in, all, count * world, type, op);
    if (code == GRADWIRE_OK)
        memcpy(out, (char *)all + bytes * (size_t)gradwire_rank(job), bytes);
    free(all);
    return code;
}

int gradwire_barrier(gradwire *job)
{
    int32_t one = 1;
    return gradwire_allreduce(job, &one, &one, 1, GRADWIRE_INT32, GRADWIRE_SUM);
}
