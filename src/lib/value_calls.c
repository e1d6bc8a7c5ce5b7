/* Pushes to and pulls from values that ranks keep for each other; see gradwire.h. */
#include "core/ranks/mesh_wire.h"
#include "lib/calls.h"

/* Checks a push or pull, and runs it. */
static int run(gradwire *job, struct gw_call *what, enum gradwire_type type,
               struct gw_calls_how how)
{
    int code = gw_calls_check(job);
    if (!code)
        code = gw_calls_check_type(type);
    if (code)
        return code;
    what->type = (enum gw_dtype)type;
    if ((!what->in && !what->out) || what->count == 0)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "data is NULL, or count is 0");
    if (what->count > GW_MESH_BYTES_MAX / gw_dtype_size(what->type))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "count is %llu: at most 2^36 bytes",
                             (unsigned long long)what->count);
    return gw_calls_run(job, what, how);
}

int gradwire_push_with(gradwire *job, uint64_t key, const void *data, size_t count,
                       enum gradwire_type type, const struct gradwire_call_options *options,
                       gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_PUSH, .in = data, .count = count, .key = key};
    return run(job, &what, type, (struct gw_calls_how){options, call});
}

int gradwire_push(gradwire *job, uint64_t key, const void *data, size_t count,
                  enum gradwire_type type)
{
    return gradwire_push_with(job, key, data, count, type, NULL, NULL);
}

int gradwire_push_start(gradwire *job, uint64_t key, const void *data, size_t count,
                        enum gradwire_type type, gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_push_with(job, key, data, count, type, NULL, call);
}

int gradwire_pull_with(gradwire *job, uint64_t key, void *data, size_t count,
                       enum gradwire_type type, const struct gradwire_call_options *options,
                       gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_PULL, .out = data, .count = count, .key = key};
    return run(job, &what, type, (struct gw_calls_how){options, call});
}

int gradwire_pull(gradwire *job, uint64_t key, void *data, size_t count, enum gradwire_type type)
{
    return gradwire_pull_with(job, key, data, count, type, NULL, NULL);
}

int gradwire_pull_start(gradwire *job, uint64_t key, void *data, size_t count,
                        enum gradwire_type type, gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_pull_with(job, key, data, count, type, NULL, call);
}
