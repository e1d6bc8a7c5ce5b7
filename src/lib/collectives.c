/*
 * Collectives that are special cases of the sum over all ranks: what a rank does not contribute is
 * zero. Bits that are to arrive as they are travel as int32, whose sums are exact.
 */
#include <stdlib.h>
#include <string.h>

#include "gradwire.h"

static size_t size_of(enum gradwire_type type)
{
    return type == GRADWIRE_FLOAT16 || type == GRADWIRE_BFLOAT16 ? 2 : 4;
}

/* Memory of `count` int32, at least one; the caller frees it. */
static int32_t *take_words(size_t count)
{
    return calloc(count ? count : 1, sizeof(int32_t));
}

int gradwire_reduce(gradwire *job, const void *in, void *out, size_t count, enum gradwire_type type,
                    enum gradwire_op op, int root)
{
    if (!job || root < 0 || root >= gradwire_world(job))
        return gradwire_allreduce(NULL, in, out, count, type, op);
    if (root == gradwire_rank(job))
        return gradwire_allreduce(job, in, out, count, type, op);
    int32_t *unused = take_words((count * size_of(type) + 3) / 4);
    if (!unused)
        return GRADWIRE_ERR_NO_MEMORY;
    int code = gradwire_allreduce(job, in, unused, count, type, op);
    free(unused);
    return code;
}

int gradwire_broadcast(gradwire *job, void *data, size_t count, enum gradwire_type type, int root)
{
    size_t bytes = count * size_of(type), words = (bytes + 3) / 4;
    if (!job || root < 0 || root >= gradwire_world(job))
        return gradwire_allreduce(NULL, data, data, count, type, GRADWIRE_SUM);
    int32_t *all = take_words(words);
    if (!all)
        return GRADWIRE_ERR_NO_MEMORY;
    if (root == gradwire_rank(job))
        memcpy(all, data, bytes);
    int code = gradwire_allreduce(job, all, all, words, GRADWIRE_INT32, GRADWIRE_SUM);
    if (code == GRADWIRE_OK)
        memcpy(data, all, bytes);
    free(all);
    return code;
}

int gradwire_allgather(gradwire *job, const void *in, void *out, size_t count,
                       enum gradwire_type type)
{
    if (!job)
        return gradwire_allreduce(NULL, in, out, count, type, GRADWIRE_SUM);
    size_t bytes = count * size_of(type), total = bytes * (size_t)gradwire_world(job);
    size_t words = (total + 3) / 4;
    int32_t *all = take_words(words);
    if (!all)
        return GRADWIRE_ERR_NO_MEMORY;
    memcpy((char *)all + bytes * (size_t)gradwire_rank(job), in, bytes);
    int code = gradwire_allreduce(job, all, all, words, GRADWIRE_INT32, GRADWIRE_SUM);
    if (code == GRADWIRE_OK)
        memcpy(out, all, total);
    free(all);
    return code;
}

int gradwire_reduce_scatter(gradwire *job, const void *in, void *out, size_t count,
                            enum gradwire_type type, enum gradwire_op op)
{
    if (!job)
        return gradwire_allreduce(NULL, in, out, count, type, op);
    size_t bytes = count * size_of(type), world = (size_t)gradwire_world(job);
    int32_t *all = take_words((bytes * world + 3) / 4);
    if (!all)
        return GRADWIRE_ERR_NO_MEMORY;
    int code = gradwire_allreduce(job, in, all, count * world, type, op);
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
