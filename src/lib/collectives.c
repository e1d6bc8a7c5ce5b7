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
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "an average is of floats, not of int32");
    return GRADWIRE_OK;
}

static int check_root(const gradwire *job, int root)
{
    if (root < 0 || root >= gradwire_world(job))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "root is %d: 0 to %d", root,
                             gradwire_world(job) - 1);
    return GRADWIRE_OK;
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
        return GRADWIRE_OK;
    bool has_in = call->in || call->kind == GW_CALL_BROADCAST;
    bool has_out =
        call->out || (call->kind == GW_CALL_REDUCE && (int)call->peer != gradwire_rank(job));
    if (!has_in || !has_out || call->count == 0)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "in or out is NULL, or count is 0");
    return gw_calls_run(job, call, how);
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
