/* Messages between ranks; see gradwire.h. */
#include "lib/calls.h"
#include "net/ranks/team.h"

/* Checks a message, and starts it. */
static int start(gradwire *job, enum gw_command_kind kind, void *data, size_t bytes, int rank,
                 uint32_t tag, gradwire_call *call)
{
    int code = gw_calls_check(job);
    if (code)
        return code;
    if (!gw_calls_has_messages(job))
        return gw_calls_fail(GRADWIRE_ERR_UNSUPPORTED, "messages need via ring");
    if (!data || bytes == 0)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "data is NULL, or bytes is 0");
    if (bytes > GW_TEAM_MESSAGE_MAX)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "bytes is %zu: at most 2^36", bytes);
    if (rank < 0 || rank >= gradwire_world(job) || rank == gradwire_rank(job))
        return gw_calls_fail(GRADWIRE_ERR_INVALID,
                             "rank is %d: another one, from 0 to %d, is expected", rank,
                             gradwire_world(job) - 1);
    if (tag > GW_TEAM_TAG_MAX)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "tag is %u: 0 to %d", tag, GW_TEAM_TAG_MAX);
    struct gw_command command = {
        .kind = kind, .out = data, .count = bytes, .rank = (uint16_t)rank, .tag = tag};
    return gw_calls_start(job, &command, call);
}

int gradwire_send_start(gradwire *job, const void *data, size_t bytes, int to, uint32_t tag,
                        gradwire_call *call)
{
    return start(job, GW_COMMAND_SEND, (void *)(uintptr_t)data, bytes, to, tag, call);
}

int gradwire_send(gradwire *job, const void *data, size_t bytes, int to, uint32_t tag)
{
    gradwire_call call;
    int code = gradwire_send_start(job, data, bytes, to, tag, &call);
    return code ? code : gradwire_wait(job, call);
}

int gradwire_receive_start(gradwire *job, void *data, size_t bytes, int from, uint32_t tag,
                           gradwire_call *call)
{
    return start(job, GW_COMMAND_RECEIVE, data, bytes, from, tag, call);
}

int gradwire_receive(gradwire *job, void *data, size_t bytes, int from, uint32_t tag)
{
    gradwire_call call;
    int code = gradwire_receive_start(job, data, bytes, from, tag, &call);
    return code ? code : gradwire_wait(job, call);
}
