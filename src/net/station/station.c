/* A process on the overlay; see station.h. */
#include "net/station/station.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/job.h"

enum {
    DIRECTS_EACH = 2,        /* of a neighbour: a process may have two hosts */
    KERNEL_BUFFER = 8 << 20, /* asked for; the system may give less */
};

#define EARLY_PACE (4 * GW_MS) /* of probes for who has just come */

struct gw_station {
    struct gw_node_memory memory;
    struct gw_datapath *datapath;
    struct gw_loop *loop;
    struct gw_neighbours *neighbours;
    struct gw_auth *auths;    /* of every neighbour; NULL: packets are not authenticated */
    bool encrypts;            /* them */
    bool ignores_groups;      /* as in struct gw_station_cfg */
    struct gw_groups *groups; /* NULL: nothing is multicast */
    gw_time look_at;          /* next look at groups, ours and that we listen to */
    gw_time probe_at;         /* next early probe of ours; GW_TIME_NEVER: there is none */
    struct gw_key keys[GW_NEIGHBOURS_KEYS_MAX];
    struct gw_tenants tenants; /* who have them */
};

/* The text of our own address. */
static int own_address(const struct gw_station_cfg *cfg, const char **text, char *error)
{
    struct gw_sock_addr addr;
    *text = cfg->address;
    if (*text)
        return GW_OK;
    *text = "0.0.0.0";
    if (!cfg->family_of)
        return GW_OK;
    int code = gw_sock_addr_resolve(cfg->family_of, &addr, error);
    if (!code && addr.storage.ss_family == AF_INET6)
        *text = "::";
    return code;
}

static const struct gw_datapath_ops *datapath_of(const struct gw_station_cfg *cfg)
{
    return cfg->datapath ? cfg->datapath : gw_datapath_find(NULL);
}

static uint16_t group_count(const struct gw_station_cfg *cfg)
{
    return cfg->group.length && gw_datapath_has_groups(datapath_of(cfg)) ? cfg->groups : 0;
}

static int open_datapath(struct gw_station *station, const struct gw_station_cfg *cfg, char *error)
{
    const char *address;
    int code = own_address(cfg, &address, error);
    if (code)
        return code;
    struct gw_datapath_cfg datapath = {
        .pool = &station->memory.pool,
        .address = address,
        .port = cfg->port,
        .entropies = cfg->entropies,
        .mtu = cfg->mtu,
        .buffer_bytes = KERNEL_BUFFER,
        .peers_max = (uint16_t)(cfg->peers_max + group_count(cfg)),
        .has_trains = true,
        .encrypts = cfg->encrypts,
        .serves_many = cfg->serves_many,
        .signals_by_option = cfg->signals_by_option,
        .faults = cfg->faults,
    };
    return gw_datapath_open(datapath_of(cfg), &datapath, &station->datapath, error);
}

static int open_loop(struct gw_station *station, const struct gw_station_cfg *cfg)
{
    struct gw_loop_cfg loop = {
        .datapath = station->datapath,
        .pool = &station->memory.pool,
        .peers_max = (uint16_t)(cfg->peers_max + group_count(cfg)),
        .directs_max = DIRECTS_EACH * cfg->peers_max,
        .fd_count = cfg->fd_count,
    };
    struct gw_neighbours_cfg attach = {
        .address = cfg->node_address,
        .role = cfg->role,
        .accepts = cfg->accepts,
        .insists = cfg->insists,
        .authenticates = cfg->authenticates,
        .encrypts = cfg->encrypts,
        .rate_bps = cfg->rate_bps,
        .entropies = cfg->entropies,
        .mtu = (uint16_t)cfg->mtu,
        .peers_max = cfg->peers_max,
        .places = cfg->places,
        .keys = station->keys,
        .key_count = cfg->key_count,
        .beat = GW_STATION_BEAT,
        .silence = GW_STATION_SILENCE,
        .deafness = GW_STATION_DEAF,
    };
    memcpy(loop.fds, cfg->fds, sizeof(loop.fds));
    if (cfg->authenticates && !(station->auths = calloc(cfg->peers_max, sizeof(*station->auths))))
        return GW_ERR_NO_MEMORY;
    struct gw_groups_cfg groups = {
        .first = cfg->group, .count = group_count(cfg), .first_peer = cfg->peers_max};
    if (groups.count && !(station->groups = gw_groups_open(&groups)))
        return GW_ERR_NO_MEMORY;
    station->loop = gw_loop_open(&loop);
    station->neighbours = gw_neighbours_open(&attach);
    return station->loop && station->neighbours ? GW_OK : GW_ERR_NO_MEMORY;
}

int gw_station_open(const struct gw_station_cfg *cfg, struct gw_station **result, char *error)
{
    GW_ASSERT(cfg->authenticates || !cfg->encrypts);
    GW_ASSERT(cfg->key_count >= 1 && cfg->key_count <= GW_NEIGHBOURS_KEYS_MAX);
    struct gw_station *station = calloc(1, sizeof(*station));
    uint32_t buffer = cfg->mtu + (cfg->authenticates ? GW_AUTH_SIZE : 0);
    if (!station || gw_node_memory_open(&station->memory, cfg->packets, buffer) != GW_OK) {
        free(station);
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    }
    station->probe_at = GW_TIME_NEVER;
    station->encrypts = cfg->encrypts;
    station->ignores_groups = cfg->ignores_groups || !gw_datapath_has_groups(datapath_of(cfg));
    memcpy(station->keys, cfg->keys, cfg->key_count * sizeof(*cfg->keys));
    station->tenants.count = cfg->key_count;
    for (uint32_t i = 0; i < cfg->key_count; i++)
        station->tenants.keys[i] = gw_job_key(gw_job_number((uint32_t)cfg->keys[i].id, 0));
    int code = gw_key_setup();
    if (code)
        gw_net_fail(error, code, "the system gives no random numbers");
    if (!code)
        code = open_datapath(station, cfg, error);
    if (!code && open_loop(station, cfg) != GW_OK)
        code = gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    if (code) {
        gw_station_close(station);
        gw_station_free(station);
        return code;
    }
    *result = station;
    return GW_OK;
}

/* Tells everybody that it is over; who does not hear it notices the silence. */
static void say_farewell(struct gw_station *station)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    for (uint16_t peer = 0; peer < GW_DATAPATH_PEERS_MAX; peer++)
        if (gw_neighbours_farewell(station->neighbours, peer, &to, bytes))
            gw_datapath_send_control(station->datapath, &to, bytes, sizeof(bytes));
}

void gw_station_close(struct gw_station *station)
{
    if (station->neighbours && station->datapath)
        say_farewell(station);
    if (station->neighbours)
        gw_neighbours_close(station->neighbours);
    if (station->loop)
        gw_loop_close(station->loop);
    else if (station->datapath)
        gw_datapath_close(station->datapath);
    if (station->groups)
        gw_groups_close(station->groups);
    station->groups = NULL;
    station->neighbours = NULL;
    station->loop = NULL;
    station->datapath = NULL;
}

void gw_station_free(struct gw_station *station)
{
    gw_node_memory_close(&station->memory);
    free(station->auths);
    free(station);
}

const struct gw_tenants *gw_station_tenants(const struct gw_station *station)
{
    return &station->tenants;
}

void gw_station_use(const struct gw_station *station, uint32_t who, struct gw_tenant_use *use)
{
    if (who == station->tenants.count)
        return;
    gw_neighbours_use(station->neighbours, who, use);
    use->forbidden += gw_loop_forbidden(station->loop, who);
}

struct gw_loop *gw_station_loop(struct gw_station *station)
{
    return station->loop;
}

struct gw_pkt_pool *gw_station_pool(struct gw_station *station)
{
    return &station->memory.pool;
}

const struct gw_datapath *gw_station_datapath(const struct gw_station *station)
{
    return station->datapath;
}

struct gw_neighbours *gw_station_neighbours(struct gw_station *station)
{
    return station->neighbours;
}

int gw_station_dial(struct gw_station *station, const char *name,
                    const struct gw_greeting *greeting, char *error)
{
    struct gw_sock_addr to;
    int code = gw_sock_addr_resolve(name, &to, error);
    if (code)
        return code;
    if (to.storage.ss_family != gw_datapath_address(station->datapath)->storage.ss_family)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "%s is not of the address family that we are bound to", name);
    int dial =
        gw_neighbours_dial(station->neighbours, &to, name, greeting, gw_loop_now(station->loop));
    if (dial < 0)
        return gw_net_fail(error, dial, "no room for another neighbour: %s", name);
    return dial;
}

uint16_t gw_station_groups(const struct gw_station *station, uint16_t *first)
{
    *first = station->groups ? gw_groups_cfg(station->groups)->first_peer : 0;
    return station->groups ? gw_groups_cfg(station->groups)->count : 0;
}

uint16_t gw_station_hearing(const struct gw_station *station,
                            const struct gw_neighbour_event *event)
{
    bool hears = station->groups && event->said.flags & GW_ATTACH_HEARS;
    return hears ? gw_groups_of(station->groups, event->peer) : GW_GROUP_NONE;
}

static void went_down(struct gw_station *station, uint16_t peer)
{
    gw_loop_unlink(station->loop, peer);
    gw_datapath_clear_peer(station->datapath, peer);
    gw_datapath_unlisten(station->datapath, peer);
    uint16_t group = station->groups ? gw_groups_of(station->groups, peer) : GW_GROUP_NONE;
    if (group == GW_GROUP_NONE)
        return;
    gw_groups_remove(station->groups, station->datapath, peer);
    if (!gw_datapath_peer(station->datapath, group))
        gw_loop_unlink(station->loop, group);
}

void gw_station_refuse(struct gw_station *station, uint16_t peer, enum gw_attach_reason reason)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    gw_neighbours_refuse(station->neighbours, peer, reason, &to, bytes);
    gw_datapath_send_control(station->datapath, &to, bytes, sizeof(bytes));
    went_down(station, peer);
}

/* Answers what came of the attach protocol. */
static void answer(struct gw_station *station, gw_time now)
{
    const uint8_t *bytes;
    struct gw_sock_addr from;
    uint8_t back[GW_ATTACH_SIZE];
    uint32_t length;
    while ((length = gw_loop_take_foreign(station->loop, &bytes, &from)) != 0) {
        uint32_t size = gw_neighbours_input(station->neighbours, &from, bytes, length, back, now);
        if (size)
            gw_datapath_send_control(station->datapath, &from, back, size);
    }
}

/* Asks who hears our groups: all, or those that somebody has come to lately. How many. */
static uint32_t probe(struct gw_station *station, bool only_early)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    uint16_t at = 0, member;
    uint32_t count = 0;
    for (; gw_groups_next(station->groups, only_early, &at, &to, &member); count++) {
        gw_neighbours_probe(station->neighbours, member, bytes);
        gw_datapath_send_control(station->datapath, &to, bytes, sizeof(bytes));
    }
    return count;
}

/* Once in a beat: asks who hears our groups, and whether we hear more than probes of others'. Who
 * has just come is asked sooner. */
static void look_at_groups(struct gw_station *station, gw_time now)
{
    uint16_t peer;
    if (!gw_deadline_before(now, station->probe_at))
        station->probe_at = probe(station, true) ? gw_time_add(now, EARLY_PACE) : GW_TIME_NEVER;
    if (gw_time_before(now, station->look_at))
        return;
    station->look_at = gw_time_add(now, GW_STATION_BEAT);
    if (station->groups)
        probe(station, false);
    while (gw_datapath_misses_group(station->datapath, &peer))
        gw_neighbours_mistrust_group(station->neighbours, peer, now);
}

int gw_station_turn(struct gw_station *station, gw_time until, char *error)
{
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    gw_time now = gw_loop_time(station->loop);
    gw_time deadline = gw_neighbours_deadline(station->neighbours);
    while (deadline != GW_TIME_NEVER && !gw_time_before(now, deadline) &&
           gw_neighbours_output(station->neighbours, &to, bytes, now)) {
        gw_datapath_send_control(station->datapath, &to, bytes, sizeof(bytes));
        deadline = gw_neighbours_deadline(station->neighbours);
    }
    look_at_groups(station, now);
    if (gw_deadline_before(deadline, until))
        until = deadline;
    if (station->groups && gw_deadline_before(station->look_at, until))
        until = station->look_at;
    if (gw_deadline_before(station->probe_at, until))
        until = station->probe_at;
    int code = gw_loop_turn(station->loop, until, error);
    if (!code)
        answer(station, gw_loop_time(station->loop));
    return code;
}

/* Begins to send to a neighbour. */
static void open_peer(struct gw_station *station, const struct gw_neighbour_event *event)
{
    uint64_t cookie = gw_neighbours_cookie(station->neighbours, event->peer);
    struct gw_auth *auth = station->auths ? &station->auths[event->peer] : NULL;
    struct gw_auth_cfg auth_cfg = {
        .key = gw_neighbours_key(station->neighbours, event->peer),
        .session = event->said.session,
        .initiators_cookie = event->dial >= 0 ? cookie : event->said.cookie,
        .responders_cookie = event->dial >= 0 ? event->said.cookie : cookie,
        .is_initiator = event->dial >= 0,
        .encrypts = station->encrypts,
    };
    if (auth)
        gw_auth_init(auth, &auth_cfg);
    struct gw_datapath_peer peer = {
        .auth = auth,
        .addr = event->addr,
        .entropies = event->said.entropies,
        .tx_cookie = event->said.cookie,
        .rx_cookie = cookie,
    };
    gw_datapath_set_peer(station->datapath, &peer);
}

/* Binds a host that has dialled us to what it said of itself. Whom we have dialled we believe. */
static void bind_peer(struct gw_station *station, const struct gw_neighbour_event *event)
{
    const struct gw_permit permit = {.address = event->said.address, .job = event->said.job};
    const struct gw_key *key = gw_neighbours_key(station->neighbours, event->peer);
    if (event->dial < 0 && event->said.role == GW_ATTACH_HOST)
        gw_loop_permit(station->loop, event->peer, &permit, (uint32_t)(key - station->keys));
}

/* Tells a worker that has dialled us the group of its job. */
static void tell_group(struct gw_station *station, const struct gw_neighbour_event *event)
{
    const struct gw_attach_msg *said = &event->said;
    if (!station->groups || said->role != GW_ATTACH_HOST || said->job == 0)
        return;
    struct gw_attach_group group =
        gw_groups_add(station->groups, station->datapath, event->peer, said->job,
                      gw_neighbours_key(station->neighbours, event->peer)->id, &event->addr);
    gw_neighbours_set_group(station->neighbours, event->peer, &group);
    station->probe_at = gw_time_add(gw_loop_time(station->loop), EARLY_PACE);
}

/* Listens to the group that a neighbour tells us, if the system lets us. */
static void follow_group(struct gw_station *station, const struct gw_neighbour_event *event)
{
    const struct gw_attach_group *group = &event->said.group;
    struct gw_sock_addr addr;
    gw_sock_addr_unpack(group->address, group->port, &addr);
    if (group->port && !station->ignores_groups && gw_sock_addr_is_multicast(&addr) &&
        gw_sock_addr_reach_by(&addr, gw_datapath_address(station->datapath), &event->addr))
        gw_datapath_listen(station->datapath, event->peer, &addr, group->cookie,
                           gw_neighbours_dial_address(station->neighbours, event->dial));
    else
        gw_datapath_unlisten(station->datapath, event->peer);
}

static void came_up(struct gw_station *station, const struct gw_neighbour_event *event)
{
    open_peer(station, event);
    bind_peer(station, event);
    if (event->dial < 0)
        tell_group(station, event);
    else
        follow_group(station, event);
}

bool gw_station_poll(struct gw_station *station, struct gw_neighbour_event *event)
{
    while (gw_neighbours_poll(station->neighbours, event)) {
        if (event->kind == GW_NEIGHBOUR_GROUP) {
            follow_group(station, event); /* nobody else needs to know */
            continue;
        }
        if (event->kind == GW_NEIGHBOUR_UP)
            came_up(station, event);
        else if (event->kind != GW_NEIGHBOUR_HEARS)
            went_down(station, event->peer);
        return true;
    }
    return false;
}
