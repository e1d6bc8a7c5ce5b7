/* What is known of the messages of push and pull by their tags; see push_catalog.h. */
#include "sim/push_catalog.h"

#include "base/assert.h"
#include "topo/memory.h"

struct gw_sim_ware *gw_sim_wares_open(const struct gw_sim_job *job)
{
    const struct gw_plan *plan = job->plan;
    const struct gw_train_spec *train = &job->spec->train;
    uint64_t partition = train->schedule->partition(train->schedule_cfg);
    struct gw_sim_ware *wares = gw_memory_zeroed(job->pieces, sizeof(*wares));
    uint32_t piece = 0;
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        uint64_t left = plan->tensors[t].bytes;
        for (uint64_t bytes; left > 0; left -= bytes) {
            bytes = partition && left > partition ? partition : left;
            GW_ASSERT(piece < job->pieces);
            wares[piece++] = (struct gw_sim_ware){
                .bytes = bytes,
                .class = gw_sim_class_of(job, plan->tensors[t].layer),
            };
        }
    }
    return wares;
}

uint64_t gw_sim_push_tags(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room)
{
    const struct gw_plan *plan = &sim->scenario->workload.plans[spec->train.plan].plan;
    (void)room;
    return (uint64_t)GW_MESSAGE_WAYS * gw_sim_pieces_of(spec, plan) * spec->server_count *
           spec->worker_count;
}

uint32_t gw_sim_push_tag(const struct gw_sim_job *job, const struct gw_sim_push *push)
{
    uint32_t at = push->piece * job->spec->server_count + push->server;
    return job->first_tag + (at * job->spec->worker_count + push->rank) * GW_MESSAGE_WAYS +
           push->way;
}

struct gw_sim_push gw_sim_push_of(const struct gw_sim_job *job, uint32_t tag)
{
    uint32_t at = (tag - job->first_tag) / GW_MESSAGE_WAYS;
    return (struct gw_sim_push){
        .way = (enum gw_message_way)((tag - job->first_tag) % GW_MESSAGE_WAYS),
        .rank = at % job->spec->worker_count,
        .server = at / job->spec->worker_count % job->spec->server_count,
        .piece = at / job->spec->worker_count / job->spec->server_count,
    };
}

gw_q16 gw_sim_push_bound(const struct gw_sim_job *job, uint32_t tag)
{
    const struct gw_job_worth *worth = &job->spec->worth;
    bool is_push = (tag - job->first_tag) % GW_MESSAGE_WAYS == GW_MESSAGE_PUSH;
    return is_push ? worth->bound : worth->bound_pull;
}

uint64_t gw_sim_push_bytes(const struct gw_sim_job *job, const struct gw_sim_ware *wares,
                           const struct gw_event *event)
{
    const struct gw_sim_push push = gw_sim_push_of(job, event->tag);
    const struct gw_piece piece = {.id = push.piece, .bytes = wares[push.piece].bytes};
    uint64_t first;
    if (event->missing == 0)
        return event->bytes;
    return gw_sim_piece_part(job->spec, &piece, push.server, &first) * sizeof(float);
}
