/* What a process has of a job: station, endpoint, communicator and ways; see io_impl.h. */
#include <stdio.h>

#include "base/cpu.h"
#include "base/error.h"
#include "lib/io_impl.h"
#include "net/attach/groups.h"

enum {
    MTU_MIN = 256,
    HOME_PACKETS = 16384,
    PACKETS = 8192,
    SERVER_PACKETS = GW_OVERLAY_WINDOW_MAX, /* for each: the results of a window */
    PEERS_EACH = 2,                         /* two ranks may have dialled each other */
    PEERS_MORE = 64,
    HOME_PORTS_MORE = 2, /* of the switch, beside those of the ranks */
    CONTROL_MAX = 4096,
    RX_FLOWS_DONE = 4096, /* messages that are complete and still answer if the last ACK was lost */
    SEGMENT = 256 << 10,  /* bytes of a collective that travel as one message */
    HAIL_COPIES = 2,      /* of a hail that a call waits for, on links that may lose packets */
    FLOWS = 4,            /* of a collective at the same time */
    /* Bytes: a tensor that is larger keeps all servers' links full, however long that takes. */
    WHOLE = 1 << 20,
    /* Fragments, 90 KB: with 1 in 100 packets lost an all-reduce is 20 times as fast as with one.
     */
    WINDOW_MIN = 64,
};

_Static_assert((int)GW_DATAPATH_GROUPS_MAX > (int)GW_IO_SERVERS_MAX, "as the switch, each has one");

/* Whether the others join this rank, whose process is the server. */
static bool is_home(const struct gw_io_plan *plan)
{
    return plan->server_count == 0 && plan->rank == 0;
}

static uint32_t station_mtu(const struct gw_io_plan *plan)
{
    return plan->mtu > MTU_MIN ? plan->mtu : MTU_MIN;
}

/* Where results go that are added up here, which listens at `own`: if its switch is, too. */
static struct gw_sock_addr group_of(const struct gw_io_plan *plan, const struct gw_sock_addr *own,
                                    uint32_t node_address)
{
    const struct gw_sock_addr none = {.length = 0};
    if (!is_home(plan) || plan->switch_[0])
        return none;
    return plan->chooses_group ? gw_groups_choose(own, 1, node_address, 1) : plan->group;
}

/* Whether a group goes with what we listen at. */
static int check_group(const struct gw_sock_addr *group, const struct gw_sock_addr *own,
                       char *error)
{
    if (!group->length)
        return GW_OK;
    if (gw_sock_addr_is_v6(group) != gw_sock_addr_is_v6(own))
        return gw_net_fail(error, GW_ERR_INVALID, "multicast is not of the family of join");
    if (gw_sock_addr_port(group) == gw_sock_addr_port(own))
        return gw_net_fail(error, GW_ERR_INVALID, "multicast has the port of join");
    return GW_OK;
}

/* Of the station, the address of the server or, without one here, of the rank. */
static int open_station(struct gw_io *io, uint32_t node_address, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct gw_sock_addr own = {.length = 0};
    int code = GW_OK;
    if (is_home(plan) && plan->join[0])
        code = gw_sock_addr_resolve(plan->join, &own, error);
    if (code)
        return code;
    struct gw_station_cfg cfg = {
        .datapath = plan->datapath,
        .address = plan->bind[0] ? plan->bind : NULL,
        .family_of = io->server_count && io->servers[0][0] ? io->servers[0] : NULL,
        .port = own.length && plan->channel == 0 ? gw_sock_addr_port(&own) : 0,
        .entropies = plan->paths,
        .packets = is_home(plan) ? HOME_PACKETS : PACKETS + SERVER_PACKETS * io->server_count,
        .mtu = station_mtu(plan),
        .peers_max = (uint16_t)(PEERS_EACH * plan->world + PEERS_MORE),
        .accepts = true,
        .authenticates = plan->authenticates,
        .encrypts = plan->encrypts,
        .signals_by_option = plan->signals_by_option,
        .ignores_groups = !plan->hears_groups,
        .node_address = node_address,
        .role = GW_ATTACH_HOST,
        .keys = &plan->key,
        .key_count = 1,
        .group = group_of(plan, &own, node_address),
        .groups = 1,
        .faults = plan->faults,
        .fds = {io->to_thread},
        .fd_count = 1,
    };
    code = check_group(&cfg.group, &own, error);
    return code ? code : gw_station_open(&cfg, &io->station, error);
}

/* This process is the server, with a switch of its own unless there are others. */
static int open_home(struct gw_io *io, uint32_t address, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    const struct gw_overlay_home_cfg home = {
        .station = io->station,
        .server_address = address,
        .switch_address = gw_key_random_address(),
        .adds_up = !plan->switch_[0],
        .ports = (uint16_t)(plan->world + HOME_PORTS_MORE),
        .aggregators = GW_OVERLAY_AGGREGATORS,
        .jobs_max = 1,
        .ranks_max = plan->world,
        .stall = plan->stall,
        .rate_bps = plan->rate_bps,
        .mtu = station_mtu(plan),
        .values = plan->values,
        .window = plan->window,
    };
    int code = gw_overlay_home_open(&home, &io->home);
    return code ? gw_net_fail(error, code, "cannot make a server: %s", gw_error_message(code))
                : GW_OK;
}

static struct gw_communicator_cfg comm_cfg(const struct gw_io *io, uint32_t address)
{
    const struct gw_io_plan *plan = &io->plan;
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    return (struct gw_communicator_cfg){
        .address = address,
        .job = io->job,
        .rank = plan->rank,
        .world = plan->world,
        .via = plan->via == GRADWIRE_VIA_DEFAULT ? GW_VIA_INA : (enum gw_via)plan->via,
        .server_count = io->server_count,
        .whole = WHOLE,
        .notice = plan->notice,
        .transport = &plan->transport,
        .parts_transport = &plan->parts_transport,
        .largest = plan->largest,
        .mtu = plan->mtu,
        .segment = SEGMENT,
        .flows = FLOWS,
        .incarnation = gw_key_random32() | 1,
        .worker = {.timeout = GW_OVERLAY_TIMEOUT,
                   .probe = GW_OVERLAY_PROBE,
                   .stall = plan->stall,
                   .congestion_control = true,
                   .keeps_results = true,
                   .window_max = GW_OVERLAY_WINDOW_MAX,
                   .window_min = WINDOW_MIN,
                   .kernels = kernels},
        .retry = GW_OVERLAY_RETRY,
        .beat = GW_STATION_BEAT,
        .stall = plan->stall,
        .kernels = kernels,
        .allocator = gw_node_memory_allocator(),
    };
}

static struct gw_overlay_links links_of(const struct gw_io_plan *plan, uint32_t hdr)
{
    return (struct gw_overlay_links){.hdr = hdr,
                                     .mtu = plan->mtu,
                                     .rate_bps = plan->rate_bps,
                                     .trims = plan->switch_[0] != '\0'};
}

/* What this rank grants to flows on credit, whatever its own flows are: at the rate of the links as
 * it is known at the beginning. */
static struct gw_grant_plan grant_plan(const struct gw_overlay_links *links)
{
    const struct gw_algo *eqds = gw_registry_find(&gw_grant_registry, "eqds");
    const struct gw_path path =
        gw_overlay_path(links, 0, links->rate_bps ? links->rate_bps : GW_OVERLAY_RATE_BPS);
    union gw_algo_cfg options;
    struct gw_grant_plan grant;
    gw_algo_defaults(eqds, options.bytes);
    ((const struct gw_grant_ops *)eqds)->plan(options.bytes, &path, &grant);
    return grant;
}

/* The endpoint of this rank, and the communicator on it. */
static int open_rank(struct gw_io *io, uint32_t address)
{
    uint32_t hdr = gw_datapath_overhead(gw_station_datapath(io->station));
    struct gw_communicator_cfg comm = comm_cfg(io, address);
    const struct gw_overlay_links links = links_of(&io->plan, hdr);
    struct gw_endpoint_cfg endpoint = {
        .address = address,
        .rx_flows_max = RX_FLOWS_DONE,
        .control_max = CONTROL_MAX,
        .mtu = io->plan.mtu,
        .hdr = hdr,
        .ack_entropies = io->plan.paths,
        .stall = io->plan.stall,
        .seed = gw_key_random32(),
        .report_every = gw_overlay_report_every(&links),
        .hail_copies = HAIL_COPIES,
        .grant = grant_plan(&links),
        .pool = gw_station_pool(io->station),
    };
    gw_communicator_demand(&comm, &endpoint);
    int code = gw_overlay_endpoint_open(&endpoint, &io->endpoint);
    if (code)
        return code;
    comm.endpoint = io->endpoint;
    size_t size = gw_communicator_size(&comm);
    if (size == 0)
        return GW_ERR_INVALID;
    io->comm_memory = gw_node_memory_take(size);
    return io->comm_memory ? gw_communicator_init(&io->comm, io->comm_memory, &comm, gw_io_now(io))
                           : GW_ERR_NO_MEMORY;
}

static int open_ways(struct gw_io *io, uint32_t address, uint32_t home_address, char *error)
{
    const struct gw_io_plan *plan = &io->plan;
    struct gw_loop *loop = gw_station_loop(io->station);
    const struct gw_ways_cfg cfg = {
        .station = io->station,
        .endpoint = io->endpoint,
        .port = {.node = gw_loop_add(loop, gw_endpoint_node(io->endpoint))},
        .comm = io->comm,
        .home = io->home,
        .home_address = home_address,
        .address = address,
        .job = io->job,
        .rank = plan->rank,
        .world = plan->world,
        .notice = plan->notice,
        .servers = io->servers,
        .server_count = io->server_count,
        .is_home_rank_0 = plan->server_count == 0,
        .switch_ = plan->switch_[0] ? plan->switch_ : NULL,
        .mtu = plan->mtu,
        .rate_bps = plan->rate_bps,
    };
    const struct gw_overlay_links links =
        links_of(plan, gw_datapath_overhead(gw_station_datapath(io->station)));
    gw_loop_set_rate(loop, cfg.port, gw_overlay_port_bps(&links));
    return gw_ways_open(&cfg, &io->ways, error);
}

/* Where the servers are; without any, the first is at rank 0. */
static void take_servers(struct gw_io *io)
{
    struct gw_io_plan *plan = &io->plan;
    for (uint32_t i = 0; i < plan->server_count; i++)
        io->servers[i] = plan->servers[i];
    if (plan->server_count == 0)
        io->servers[0] = plan->join;
    io->server_count = plan->server_count ? plan->server_count : 1;
}

/* Each channel is a job of its own, and of a job with as many: who has others meets nobody. */
static uint32_t job_number(const struct gw_io_plan *plan)
{
    char name[GW_IO_NAME_MAX + sizeof("\n65535/65535")];
    if (plan->channels == 1)
        return gw_key_job(&plan->key, plan->job);
    snprintf(name, sizeof(name), "%s\n%u/%u", plan->job, plan->channel, plan->channels);
    return gw_key_job(&plan->key, name);
}

int gw_io_open_job(struct gw_io *io, char *error)
{
    uint32_t address = gw_key_random_address(), home_address = gw_key_random_address();
    io->job = job_number(&io->plan);
    take_servers(io);
    int code = open_station(io, is_home(&io->plan) ? home_address : address, error);
    if (!code && is_home(&io->plan))
        code = open_home(io, home_address, error);
    if (code)
        return code;
    code = open_rank(io, address);
    if (code)
        return gw_net_fail(error, code, "cannot make a worker of %u ranks: %s", io->plan.world,
                           gw_error_message(code));
    return open_ways(io, address, home_address, error);
}

void gw_io_close_job(struct gw_io *io)
{
    if (io->ways)
        gw_ways_close(io->ways);
    if (io->comm)
        gw_communicator_fini(io->comm);
    gw_node_memory_give(io->comm_memory);
    gw_node_memory_give(io->endpoint);
    if (io->home)
        gw_overlay_home_close(io->home);
}

/* Something is still under way from here, or others need the server here. */
bool gw_io_is_deserted(const struct gw_io *io)
{
    struct gw_overlay_job_view view;
    if (gw_communicator_is_busy(io->comm))
        return false;
    if (!io->home || !gw_overlay_server_view(gw_overlay_home_server(io->home), 0, &view))
        return true;
    return !view.is_owing && (io->error || (view.phase != GW_COORDINATOR_RUNNING &&
                                            view.phase != GW_COORDINATOR_INSTALLING));
}
