/*
 * The servers of a job that makes calls: shards of sums, and its home with the registrar.
 *
 * What sessions tell a process, the simulator does: that a rank is there, a round trip after it
 * started; that it has gone, when its host died or it ended, and job.silence has passed. Likewise,
 * ranks learn that a server has gone, after job.silence, or is back, after a round trip.
 */
#include <stdlib.h>

#include "base/error.h"
#include "sim/calls_impl.h"
#include "sim/notices.h"
#include "topo/memory.h"

static struct gw_registrar_cfg registrar_cfg(const struct gw_sim *sim,
                                             const struct gw_job_spec *spec)
{
    return (struct gw_registrar_cfg){
        .endpoint = sim->nodes[sim->place[gw_sim_calls_home(sim, spec)]].endpoint,
        .job = gw_sim_shard_number(spec, 0),
        .world = (uint16_t)spec->worker_count,
        .transport = &sim->scenario->transport,
    };
}

void gw_sim_calls_add_servers(const struct gw_sim *sim, const struct gw_job_spec *spec,
                              struct gw_sim_demand *demands)
{
    const uint32_t world = spec->worker_count;
    for (uint32_t i = 0; i < spec->server_count; i++) {
        struct gw_sim_demand *demand = &demands[gw_sim_servers_of(sim, spec)[i]];
        demand->apps += GW_SIM_CALLS_VIAS * GW_SIM_SHARD_APPS;
        demand->servers++;
    }
    struct gw_sim_demand *home = &demands[gw_sim_calls_home(sim, spec)];
    home->sends += gw_registrar_flows(world);
    home->timed += gw_registrar_flows(world);
    home->receives += 2 * gw_registrar_awaits(world); /* those complete still answer */
    home->expects += gw_registrar_awaits(world);
}

static void open_home(struct gw_sim *sim, const struct gw_job_spec *spec, struct gw_sim_crew *crew)
{
    const struct gw_registrar_cfg cfg = registrar_cfg(sim, spec);
    crew->memory = gw_memory_aligned(gw_registrar_size(cfg.world));
    crew->registrar = gw_registrar_init(crew->memory, &cfg);
    crew->home_lives++;
    if (spec->notice_path.rtt)
        gw_registrar_set_notice_path(crew->registrar, &spec->notice_path);
}

static void close_home(struct gw_sim_crew *crew)
{
    if (crew->registrar)
        gw_registrar_fini(crew->registrar);
    free(crew->memory);
    crew->registrar = NULL;
    crew->memory = NULL;
}

int gw_sim_calls_open_servers(struct gw_sim *sim, const struct gw_job_spec *spec,
                              struct gw_sim_crew *crew)
{
    const uint32_t servers = spec->server_count, shards = GW_SIM_CALLS_VIAS * servers;
    int error = GW_OK;
    crew->shards = gw_memory_zeroed(shards, sizeof(*crew->shards));
    for (uint32_t i = 0; i < shards && !error; i++) {
        uint32_t number = gw_sim_shard_number(spec, i % servers);
        crew->shards[i] = (struct gw_sim_shard){
            .host = gw_sim_servers_of(sim, spec)[i % servers],
            .number = i < servers ? number : gw_job_shard_direct(number),
            .levels = i < servers ? spec->levels : 0,
        };
        error = gw_sim_shard_open(sim, spec, &crew->shards[i]);
    }
    if (!error)
        open_home(sim, spec, crew);
    return error;
}

void gw_sim_calls_close_servers(const struct gw_job_spec *spec, struct gw_sim_crew *crew)
{
    close_home(crew);
    for (uint32_t i = 0; crew->shards && i < GW_SIM_CALLS_VIAS * spec->server_count; i++)
        gw_sim_shard_close(&crew->shards[i]);
    free(crew->shards);
    crew->shards = NULL;
}

/* At so much from now ranks learn what has become of servers. */
static void look_later(struct gw_sim *sim, struct gw_sim_member *member, gw_time at)
{
    struct gw_sim_rank *rank = member->mover;
    if (!rank || member->outcome != GW_FLOW_PENDING)
        return;
    rank->look_at = at;
    gw_sim_member_wake_by(sim, member, at);
}

void gw_sim_calls_servers_crashed(struct gw_sim *sim, uint32_t index, uint32_t place, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, index);
    struct gw_sim_crew *crew = sim->jobs[index].mover;
    bool has_lost = false;
    for (uint32_t i = 0; i < GW_SIM_CALLS_VIAS * spec->server_count; i++)
        if (sim->place[crew->shards[i].host] == place) {
            gw_sim_shard_close(&crew->shards[i]);
            has_lost = true;
        }
    if (sim->place[gw_sim_calls_home(sim, spec)] == place)
        close_home(crew);
    for (uint32_t i = 0; i < spec->worker_count && has_lost; i++)
        look_later(sim, gw_sim_member_of(sim, spec, i), now + spec->silence);
}

void gw_sim_calls_servers_restarted(struct gw_sim *sim, uint32_t index, uint32_t place)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, index);
    struct gw_sim_crew *crew = sim->jobs[index].mover;
    const uint32_t home = gw_sim_calls_home(sim, spec);
    const gw_time now = sim->window_index * sim->window;
    bool is_back = false;
    for (uint32_t i = 0; i < GW_SIM_CALLS_VIAS * spec->server_count; i++)
        if (sim->place[crew->shards[i].host] == place) {
            int error = gw_sim_shard_open(sim, spec, &crew->shards[i]);
            GW_ASSERT(error == GW_OK); /* there was room before */
            is_back = true;
        }
    if (sim->place[home] == place)
        open_home(sim, spec, crew);
    for (uint32_t i = 0; i < spec->worker_count && is_back; i++) {
        struct gw_sim_member *member = gw_sim_member_of(sim, spec, i);
        struct gw_sim_rank *rank = member->mover;
        if (!rank || member->outcome != GW_FLOW_PENDING)
            continue;
        rank->is_cut = false;
        gw_time from = now > spec->start ? now : spec->start;
        look_later(sim, member,
                   sim->place[home] == place ? gw_sim_calls_greet(sim, member, from)
                                             : from + sim->scenario->brtt_max);
    }
}

void gw_sim_calls_cut(struct gw_sim *sim, uint32_t index, uint32_t host, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, index);
    for (uint32_t i = 0; i < spec->worker_count; i++) {
        struct gw_sim_member *member = gw_sim_member_of(sim, spec, i);
        if (gw_sim_workers_of(sim, spec)[i] != host || !member->mover)
            continue;
        ((struct gw_sim_rank *)member->mover)->is_cut = true;
        look_later(sim, member, now + sim->window);
    }
}

void gw_sim_calls_look(const struct gw_sim *sim, const struct gw_sim_member *member, gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    const struct gw_sim_crew *crew = sim->jobs[member->job].mover;
    struct gw_sim_rank *rank = member->mover;
    rank->look_at = GW_TIME_NEVER;
    for (uint32_t i = 0; i < spec->server_count && rank->comm; i++) {
        const uint32_t server = gw_sim_servers_of(sim, spec)[i], bit = UINT32_C(1) << i;
        bool is_new = i == 0 && rank->home_life != crew->home_lives;
        bool is_up = crew->shards[i].server && !(i == 0 && rank->is_cut);
        if (is_up && (is_new || rank->down & bit)) {
            struct gw_path path =
                gw_sim_app_path(sim, gw_sim_workers_of(sim, spec)[member->rank], server);
            gw_communicator_set_server(rank->comm, i, server, &path, now);
            rank->down &= ~bit;
        } else if (!is_up && !(rank->down & bit)) {
            gw_communicator_server_down(rank->comm, i, now);
            rank->down |= bit;
        }
    }
    rank->home_life = crew->home_lives;
}

gw_time gw_sim_calls_greet(struct gw_sim *sim, struct gw_sim_member *member, gw_time from)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    uint32_t host = gw_sim_workers_of(sim, spec)[member->rank];
    gw_time at = from + gw_sim_app_path(sim, host, gw_sim_calls_home(sim, spec)).brtt;
    gw_sim_member_news(sim, member, at);
    return at;
}

void gw_sim_calls_silence(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    gw_time silence = gw_sim_job_spec(sim, member->job)->silence;
    gw_sim_member_news(sim, member, now + (silence > sim->window ? silence : sim->window));
}

void gw_sim_calls_heard(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim *sim = part->sim;
    const struct gw_job_spec *spec = gw_sim_job_spec(sim, member->job);
    const struct gw_sim_crew *crew = sim->jobs[member->job].mover;
    const uint32_t host = gw_sim_workers_of(sim, spec)[member->rank];
    if (!crew->registrar)
        return;
    if (!member->mover || member->outcome != GW_FLOW_PENDING) {
        gw_registrar_gone(crew->registrar, host, now);
        return;
    }
    const struct gw_registrar_rank rank = {
        .place = {.address = host},
        .rank = (uint16_t)member->rank,
        .notice = gw_sim_notices_option(sim, spec),
        .path = gw_sim_app_path(sim, gw_sim_calls_home(sim, spec), host),
    };
    enum gw_job_reason reason = gw_registrar_come(crew->registrar, &rank, now);
    GW_ASSERT(reason == GW_JOB_OK); /* ranks and addresses differ, and all announce alike */
}
