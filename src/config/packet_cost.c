/*
 * The keys of `host:` that say what packets cost a host, beside those of the endpoint, and the
 * models of it that have names: the one place where these numbers are, each with what it was
 * calibrated on. `cost: NAME` sets the keys, and what is written beside it wins.
 *
 * A host has one queue for what it receives, so a model stands for the cores that a system uses
 * together, not for one of many.
 *
 * ATP: steps of Figure 19 (NSDI 2021, appendix D.1), from the goodput of 60 Gb/s back: two-pass is
 * 1.3 times, MP-QP 1.47 times, TSO 3 times what was before, so 46.15, 31.40 and 10.47 Gb/s. Packets
 * carry 62 values with two-pass and 31 without, behind 58 bytes. Two-pass itself costs a host
 * nothing. So a packet takes 248 bytes / 60 Gb/s = 33.07 ns and 124 bytes / 46.15 Gb/s = 21.49 ns
 * of the same host; what is in proportion to bytes is 0.09334 ns each, or 85.7 Gb/s (the paper
 * names the copies at the server and at workers as the bottleneck), and the rest 4.51 ns for each
 * packet. Without MP-QP, which helps receivers, 31.60 ns, of which 14.61 are for each packet;
 * without TSO, which helps senders, these need 94.8 ns for each packet.
 *
 * TCP in the kernel: what Cai et al. ("Understanding Host Network Stack Overheads", SIGCOMM 2021)
 * found: a core receives about 42 Gb/s, most of it the copy to the application, with everything
 * switched on and packets of 9000 bytes. Scaled from their 3.4 GHz to the 2.2 GHz of ATP's hosts
 * that is 27 Gb/s for the bytes. A packet of 1500 bytes is merged with others before it is worked
 * on; 150 ns for it are about 330 cycles of driver and merge. So one core receives 20 Gb/s in
 * packets of 1500 bytes, as a plain iperf does on such machines, and sends twice as much (there
 * the adapter cuts packets, and receivers are the bottleneck).
 *
 * RDMA: the adapter moves the data, and what limits it is the link.
 */
#include "config/loader.h"

static const struct gw_param params[] = {
    GW_PARAM(struct gw_host_cost_cfg, TIME, rx_cost, "0", "time that a received packet takes"),
    {.name = "rx_rate",
     .type = GW_PARAM_RATE,
     .offset = offsetof(struct gw_host_cost_cfg, rx_rate_bps),
     .help = "bytes received, headers included, are worked off at this rate; not set: at once"},
    GW_PARAM(struct gw_host_cost_cfg, TIME, tx_cost, "0",
             "least time between two packets that a port sends"),
    {.name = "tx_rate",
     .type = GW_PARAM_RATE,
     .offset = offsetof(struct gw_host_cost_cfg, tx_rate_bps),
     .help = "to which the bytes of the first, headers included, add at this rate; not set: "
             "nothing"},
    GW_PARAM(struct gw_host_cost_cfg, BYTES, rx_queue, "0",
             "bytes of data received that wait to be worked off; more are dropped or, with "
             "lossless queues, held back; 0: no limit"),
    {.name = "cost_hosts",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct gw_host_cost_cfg, hosts),
     .initial = "all",
     .choices = "all|servers",
     .help = "which hosts this applies to: all, or those that run the server of a job"},
};

static const struct gw_preset presets[] = {
    {.name = "rdma", .settings = "", .help = "the adapter moves the data: nothing"},
    {.name = "tcp",
     .settings = "rx_cost=150ns rx_rate=27Gbps tx_cost=75ns tx_rate=54Gbps",
     .help = "TCP in the kernel, one core each way: 20 Gb/s received in packets of 1500 bytes"},
    {.name = "atp-default",
     .settings = "rx_cost=14610ps rx_rate=85.7Gbps tx_cost=94790ps",
     .help = "ATP without help from the adapter: 10.5 Gb/s of gradients in packets of 31 values"},
    {.name = "atp-tso",
     .settings = "rx_cost=14610ps rx_rate=85.7Gbps",
     .help = "with segmentation offload: 31.4 Gb/s in packets of 31 values"},
    {.name = "atp-mpqp",
     .settings = "rx_cost=4505ps rx_rate=85.7Gbps",
     .help = "and multi-packet queue pairs: 46.2 Gb/s in packets of 31 values"},
    {.name = "atp",
     .settings = "rx_cost=4505ps rx_rate=85.7Gbps",
     .help = "the same, as all of ATP: 60 Gb/s in packets of 62 values, which two passes allow"},
};

const struct gw_algo gw_loader_packet_cost = {
    .name = "host",
    .summary = "what packets cost a host; `host.cost` names one of the presets",
    .source = "ATP (NSDI 2021) figure 19; Cai et al. (SIGCOMM 2021)",
    .params = params,
    .presets = presets,
    .param_count = sizeof(params) / sizeof(params[0]),
    .preset_count = sizeof(presets) / sizeof(presets[0]),
    .cfg_size = sizeof(struct gw_host_cost_cfg),
};

static const struct gw_algo *const algos[] = {&gw_loader_packet_cost};

const struct gw_registry gw_cost_registry = {.kind = "cost", .algos = algos, .count = 1};
