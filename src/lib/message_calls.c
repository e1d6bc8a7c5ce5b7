/* Messages between ranks; see gradwire.h. */
#include "core/ranks/mesh_wire.h"
#include "lib/calls.h"

/* Checks a message, and runs it. */
static int run(gradwire *job, struct gw_call *what, int rank, struct gw_calls_how how)
{
    int code = gw_calls_check(job);
    if (code)
        return code;
    if ((!what->in && !what->out) || what->count == 0)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "data is NULL, or bytes is 0");
    if (what->count > GW_MESH_BYTES_MAX)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "bytes is %llu: at most 2^36",
                             (unsigned long long)what->count);
    if (rank < 0 || rank >= gradwire_world(job) || rank == gradwire_rank(job))
        return gw_calls_fail(GRADWIRE_ERR_INVALID,
                             "rank is %d: another one, from 0 to %d, is expected", rank,
                             gradwire_world(job) - 1);
    if (what->tag > GW_MESH_MESSAGE_TAG_MAX)
        return gw_calls_fail(GRADWIRE_ERR_INVALID, "tag is %u: 0 to %d", what->tag,
                             GW_MESH_MESSAGE_TAG_MAX);
    what->peer = (uint32_t)rank;
    return gw_calls_run(job, what, how);
}

int gradwire_send_with(gradwire *job, const void *data, size_t bytes, int to, uint32_t tag,
                       const struct gradwire_call_options *options, gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_SEND, .in = data, .count = bytes, .tag = tag};
    return run(job, &what, to, (struct gw_calls_how){options, call});
}

int gradwire_send(gradwire *job, const void *data, size_t bytes, int to, uint32_t tag)
{
    return gradwire_send_with(job, data, bytes, to, tag, NULL, NULL);
}

int gradwire_send_start(gradwire *job, const void *data, size_t bytes, int to, uint32_t tag,
                        gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_send_with(job, data, bytes, to, tag, NULL, call);
}

int gradwire_receive_with(gradwire *job, void *data, size_t bytes, int from, uint32_t tag,
                          const struct gradwire_call_options *options, gradwire_call *call)
{
    struct gw_call what = {.kind = GW_CALL_RECEIVE, .out = data, .count = bytes, .tag = tag};
    return run(job, &what, from, (struct gw_calls_how){options, call});
}

int gradwire_receive(gradwire *job, void *data, size_t bytes, int from, uint32_t tag)
{
    return gradwire_receive_with(job, data, bytes, from, tag, NULL, NULL);
}

int gradwire_receive_start(gradwire *job, void *data, size_t bytes, int from, uint32_t tag,
                           gradwire_call *call)
{
    int code = gw_calls_check_place(call);
    return code ? code : gradwire_receive_with(job, data, bytes, from, tag, NULL, call);
}
