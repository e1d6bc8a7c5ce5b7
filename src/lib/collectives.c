/* Collectives: calls that all ranks start in the same order. See gradwire.h. */
#include <stdint.h>

#include "lib/calls.h"

_Static_assert(GRADWIRE_UINT8 == (int)GW_DTYPE_U8 && GRADWIRE_FLOAT64 == (int)GW_DTYPE_F64 &&
                   GRADWIRE_INT32 == (int)GW_DTYPE_I32,
               "the core's numbers of types");
_Static_assert(GRADWIRE_PRODUCT == (int)GW_OP_PRODUCT && GRADWIRE_MIN == (int)GW_OP_MIN &&
                   GRADWIRE_AVERAGE == (int)GW_OP_AVERAGE,
               "the core's numbers of operations");

/* Whether `count` elements of each rank fit into memory. */
static int check_count(const gradwire *job, uint64_t count, enum gw_dtype type)
{
    if (count > PTRDIFF_MAX / gw_dtype_size(type) / (size_t)gradwire_world(job))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "count is %llu: so much fits no memory",
                             (unsigned long long)count);
    return GRADWIRE_OK;
}

static int check_op(int op, enum gw_dtype type)
{
    if ((uint32_t)op > GRADWIRE_PRODUCT)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "op %d is not known", op);
    if (op == GRADWIRE_AVERAGE && !gw_dtype_is_float(type))
        return gw_calls_fail(GRADWIRE_ERR_INVALID,
                             "an average is of floats, not of int32, int64 or uint8");
    return GRADWIRE_OK;
}

static int check_root(const gradwire *job, int root)
{
    if (root < 0 || root >= gradwire_world(job))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "root is %d: 0 to %d", root,
                             gradwire_world(job) - 1);
    return GRADWIRE_OK;
}

/* Whether all memory is there that this rank needs. It may lie apart, or where the result has the
 * same elements: in the same place, or as this rank's part of the larger one. */
static int check_memory(const gradwire *job, const struct gw_call *call)
{
    bool is_scatter = call->kind == GW_CALL_REDUCE_SCATTER;
    bool is_gather = call->kind == GW_CALL_ALLGATHER;
    size_t size = call->count * gw_dtype_size(call->type), world = (size_t)gradwire_world(job);
    size_t own = (size_t)gradwire_rank(job) * size;
    uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    uintptr_t in_end = in + (is_scatter ? world : 1) * size;
    uintptr_t out_end = out + (is_gather ? world : 1) * size;
    bool needs_out = call->kind != GW_CALL_REDUCE || (int)call->peer == gradwire_rank(job);
    if (!in || (!out && needs_out))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "%s is NULL",
                             call->kind == GW_CALL_BROADCAST ? "data" : (in ? "out" : "in"));
    bool is_shared = in + (is_scatter ? own : 0) == out + (is_gather ? own : 0);
    if (!needs_out || is_shared || in_end <= out || out_end <= in)
        return GRADWIRE_OK;
    return gw_calls_fail(GRADWIRE_ERR_INVALID, "in and out overlap: %s",
                         is_scatter  ? "out may only be this rank's part of in"
                         : is_gather ? "in may only be this rank's part of out"
                                     : "they may only be the same");
}

/* Checks what all collectives of tensors have in common, and runs one. An empty one that is waited
 * for is done. */
static int run(gradwire *job, struct gw_call *call, struct gw_calls_how how)
{
    int code = check_count(job, call->count, call->type);
    if (!code)
        code = check_op((int)call->op, call->type);
    if (code)
        return code;
    if (call->count == 0 && !how.call)
        return gw_calls_run_empty(job, call, how.options);
    if (call->count == 0)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "count is 0: there is nothing to start");
    code = check_memory(job, call);
    return code ? code : gw_calls_run(job, call, how);
}

/* Of a job and a type that may be used. */
static int check(const gradwire *job, enum gradwire_type type)
{
    int code = gw_calls_check(job);
    return code ? code : gw_calls_check_type(type);
}

int gradwire_allreduce_with(gradwire *job, const void *in, void *out, size_t count,
                            enum gradwire_type type, enum gradwire_op op,
                            const struct gradwire_call_options *options, gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_ALLREDUCE,
                           .in = in,
                           .out = out,
                           .count = count,
                           .type = (enum gw_dtype)type,
                           .op = (enum gw_op)op};
    int code = check(job, type);
    return code ? code : run(job, &what, (struct gw_calls_how){options, call});
}

int gradwire_allreduce(gradwire *job, const void *in, void *out, size_t count,
                       enum gradwire_type type, enum gradwire_op op)
{
    return gradwire_allreduce_with(job, in, out, count, type, op, NULL, NULL);
}

int gradwire_allreduce_start(gradwire *job, const void *in, void *out, size_t count,
                             enum gradwire_type type, enum gradwire_op op, gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_allreduce_with(job, in, out, count, type, op, NULL, call);
}

int gradwire_reduce_with(gradwire *job, const void *in, void *out, size_t count,
                         enum gradwire_type type, enum gradwire_op op, int root,
                         const struct gradwire_call_options *options, gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_REDUCE,
                           .in = in,
                           .out = out,
                           .count = count,
                           .type = (enum gw_dtype)type,
                           .op = (enum gw_op)op,
                           .peer = (uint32_t)root};
    int code = check(job, type);
    if (!code)
        code = check_root(job, root);
    return code ? code : run(job, &what, (struct gw_calls_how){options, call});
}

int gradwire_reduce(gradwire *job, const void *in, void *out, size_t count, enum gradwire_type type,
                    enum gradwire_op op, int root)
{
    return gradwire_reduce_with(job, in, out, count, type, op, root, NULL, NULL);
}

int gradwire_reduce_start(gradwire *job, const void *in, void *out, size_t count,
                          enum gradwire_type type, enum gradwire_op op, int root,
                          gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_reduce_with(job, in, out, count, type, op, root, NULL, call);
}

int gradwire_broadcast_with(gradwire *job, void *data, size_t count, enum gradwire_type type,
                            int root, const struct gradwire_call_options *options,
                            gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_BROADCAST,
                           .in = data,
                           .out = data,
                           .count = count,
                           .type = (enum gw_dtype)type,
                           .peer = (uint32_t)root};
    int code = check(job, type);
    if (!code)
        code = check_root(job, root);
    return code ? code : run(job, &what, (struct gw_calls_how){options, call});
}

int gradwire_broadcast(gradwire *job, void *data, size_t count, enum gradwire_type type, int root)
{
    return gradwire_broadcast_with(job, data, count, type, root, NULL, NULL);
}

int gradwire_broadcast_start(gradwire *job, void *data, size_t count, enum gradwire_type type,
                             int root, gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_broadcast_with(job, data, count, type, root, NULL, call);
}

int gradwire_allgather_with(gradwire *job, const void *in, void *out, size_t count,
                            enum gradwire_type type, const struct gradwire_call_options *options,
                            gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_ALLGATHER,
                           .in = in,
                           .out = out,
                           .count = count,
                           .type = (enum gw_dtype)type};
    int code = check(job, type);
    return code ? code : run(job, &what, (struct gw_calls_how){options, call});
}

int gradwire_allgather(gradwire *job, const void *in, void *out, size_t count,
                       enum gradwire_type type)
{
    return gradwire_allgather_with(job, in, out, count, type, NULL, NULL);
}

int gradwire_allgather_start(gradwire *job, const void *in, void *out, size_t count,
                             enum gradwire_type type, gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_allgather_with(job, in, out, count, type, NULL, call);
}

int gradwire_reduce_scatter_with(gradwire *job, const void *in, void *out, size_t count,
                                 enum gradwire_type type, enum gradwire_op op,
                                 const struct gradwire_call_options *options, gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_REDUCE_SCATTER,
                           .in = in,
                           .out = out,
                           .count = count,
                           .type = (enum gw_dtype)type,
                           .op = (enum gw_op)op};
    int code = check(job, type);
    return code ? code : run(job, &what, (struct gw_calls_how){options, call});
}

int gradwire_reduce_scatter(gradwire *job, const void *in, void *out, size_t count,
                            enum gradwire_type type, enum gradwire_op op)
{
    return gradwire_reduce_scatter_with(job, in, out, count, type, op, NULL, NULL);
}

int gradwire_reduce_scatter_start(gradwire *job, const void *in, void *out, size_t count,
                                  enum gradwire_type type, enum gradwire_op op, gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_reduce_scatter_with(job, in, out, count, type, op, NULL, call);
}

int gradwire_barrier_with(gradwire *job, const struct gradwire_call_options *options,
                          gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_BARRIER};
    int code = gw_calls_check(job);
    return code ? code : gw_calls_run(job, &what, (struct gw_calls_how){options, call});
}

int gradwire_barrier(gradwire *job)
{
    return gradwire_barrier_with(job, NULL, NULL);
}

int gradwire_barrier_start(gradwire *job, gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_barrier_with(job, NULL, call);
}
