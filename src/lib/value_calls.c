/* Pushes to and pulls from values that ranks keep for each other; see gradwire.h. */
#include "core/quant/kernels.h"
#include "lib/calls.h"
#include "net/ranks/team.h"

/* Checks a call, and starts it. */
static int start(gradwire *job, enum gw_command_kind kind, uint64_t key, void *data, size_t count,
                 enum gradwire_type type, gradwire_call *call)
{
    const char *name = kind == GW_COMMAND_PULL ? "pull" : "push";
    int code = gw_calls_check(job);
    if (code)
        return code;
    if (!gw_calls_has_messages(job))
        return gw_calls_fail(GRADWIRE_ERR_UNSUPPORTED, "%s needs via ring", name);
    if ((uint32_t)type > GRADWIRE_INT32)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "type %d is not known", type);
    if (!data || count == 0)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "data is NULL, or count is 0");
    if (count > GW_TEAM_MESSAGE_MAX / gw_dtype_size((enum gw_dtype)type))
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "count is %zu: at most 2^36 bytes", count);
    struct gw_command command = {
        .kind = kind, .out = data, .count = count, .type = (uint8_t)type, .key = key};
    return gw_calls_start(job, &command, call);
}

int gradwire_push_start(gradwire *job, uint64_t key, const void *data, size_t count,
                        enum gradwire_type type, gradwire_call *call)
{
    return start(job, GW_COMMAND_PUSH, key, (void *)(uintptr_t)data, count, type, call);
}

int gradwire_push(gradwire *job, uint64_t key, const void *data, size_t count,
                  enum gradwire_type type)
{
    gradwire_call call;
    int code = gradwire_push_start(job, key, data, count, type, &call);
    return code ? code : gradwire_wait(job, call);
}

int gradwire_pull_start(gradwire *job, uint64_t key, void *data, size_t count,
                        enum gradwire_type type, gradwire_call *call)
{
    return start(job, GW_COMMAND_PULL, key, data, count, type, call);
}

int gradwire_pull(gradwire *job, uint64_t key, void *data, size_t count, enum gradwire_type type)
{
    gradwire_call call;
    int code = gradwire_pull_start(job, key, data, count, type, &call);
    return code ? code : gradwire_wait(job, call);
}
