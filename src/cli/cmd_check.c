/* `gradwire check`: is this machine ready for the datapath, and what to change. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/option.h"
#include "core/quant/kernels.h"
#include "net/udp/probe.h"
#include "net/udp/sock.h"
#include "net/udp/udp.h"

enum {
    ITEMS_MAX = 64,
    TEXT_MAX = 256,
    BUFFER_WANTED = 8 << 20,
    MTU_WANTED = 1500,
    KEY_PORT = 256,
    KEY_INTERFACE,
    KEY_JSON,
};

enum state {
    STATE_OK,
    STATE_WARN, /* it works, slower or with less */
    STATE_FAIL, /* it does not work */
};

static const char *const state_names[] = {"ok", "warn", "fail"};

struct item {
    const char *name;
    enum state state;
    char found[TEXT_MAX];
    char advice[TEXT_MAX]; /* a command, or what it means; empty when all is well */
};

struct report {
    struct item items[ITEMS_MAX];
    uint32_t count;
};

struct check_args {
    uint16_t port;
    const char *interface;
    bool json;
};

static const struct argp_option options[] = {
    {"port", KEY_PORT, "N", 0, "is this UDP port free? (4791)", 0},
    {"interface", KEY_INTERFACE, "NAME", 0, "look at this interface alone", 0},
    {"json", KEY_JSON, 0, 0, "print one JSON value", 0},
    {0},
};

static const char doc[] = "Says whether this machine is ready for the datapath, and what to change."
                          "\vExample:\n  gradwire check --interface eth0\n";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct check_args *args = state->input;
    uint64_t port;
    switch (key) {
    case KEY_PORT:
        if (gw_parse_count(text, &port) == 0 && port >= 1 && port <= UINT16_MAX) {
            args->port = (uint16_t)port;
            return 0;
        }
        return gw_option_refuse("port", text, "1 to 65535");
    case KEY_INTERFACE:
        if (if_nametoindex(text)) {
            args->interface = text;
            return 0;
        }
        gw_complain("--interface=%s: there is no such interface", text);
        return EINVAL;
    case KEY_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        return 0;
    case ARGP_KEY_ARG:
        gw_complain("check: '%s': no argument is expected", text);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A new line of the report; what was found is formatted, the advice may be NULL. */
__attribute__((format(printf, 5, 6))) static void add(struct report *report, const char *name,
                                                      enum state state, const char *advice,
                                                      const char *format, ...)
{
    va_list args;
    if (report->count == ITEMS_MAX)
        return;
    struct item *item = &report->items[report->count++];
    item->name = name;
    item->state = state;
    va_start(args, format);
    vsnprintf(item->found, sizeof(item->found), format, args);
    va_end(args);
    if (advice && state != STATE_OK)
        snprintf(item->advice, sizeof(item->advice), "%s", advice);
}

/* First line of a file; false: there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    bool is_there = file && fgets(line, (int)size, file);
    if (file)
        fclose(file);
    if (is_there)
        line[strcspn(line, "\n")] = '\0';
    return is_there;
}

static void check_system(struct report *report)
{
    struct utsname name;
    char line[TEXT_MAX] = "unknown";
    uname(&name);
    add(report, "kernel", STATE_OK, NULL, "%s %s", name.sysname, name.release);
    add(report, "processors", STATE_OK, NULL, "%ld, arithmetic by %s",
        sysconf(_SC_NPROCESSORS_ONLN), gw_kernels_best(gw_cpu_features())->name);
    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", line,
              sizeof(line));
    bool is_fast = strcmp(line, "tsc") == 0 || strcmp(line, "arch_sys_counter") == 0 ||
                   strcmp(line, "kvm-clock") == 0;
    add(report, "clock", is_fast ? STATE_OK : STATE_WARN,
        "reading this clock is a system call: packets cost more", "%s", line);
}

static void check_sockets(struct report *report)
{
    struct gw_probe probe, v6;
    gw_probe_run("127.0.0.1", BUFFER_WANTED, &probe);
    if (!probe.has_sockets) {
        add(report, "UDP", STATE_FAIL, "nothing works without UDP on 127.0.0.1", "no socket");
        return;
    }
    add(report, "sending trains", probe.cuts_trains ? STATE_OK : STATE_WARN,
        "this kernel lacks UDP_SEGMENT (Linux 4.18): packets travel one by one", "UDP_SEGMENT %s",
        probe.cuts_trains ? "works" : "does not work");
    add(report, "receiving trains", probe.joins_trains ? STATE_OK : STATE_WARN,
        "this kernel lacks UDP_GRO (Linux 5.0): packets arrive one by one", "UDP_GRO %s",
        probe.joins_trains ? "works" : "does not work");
    add(report, "class and ECN", probe.keeps_tos ? STATE_OK : STATE_WARN,
        "marks of congestion are not seen", "TOS byte %s",
        probe.keeps_tos ? "arrives as it was sent" : "does not arrive");
    /* The kernel counts twice what it was asked for. */
    bool is_enough = probe.receive_room >= BUFFER_WANTED;
    add(report, "receive buffer", is_enough ? STATE_OK : STATE_WARN,
        "sysctl -w net.core.rmem_max=8388608 net.core.wmem_max=8388608", "%u KiB of %u wanted",
        probe.receive_room >> 10, BUFFER_WANTED >> 10);
    gw_probe_run("::1", 0, &v6);
    add(report, "IPv6", v6.has_sockets ? STATE_OK : STATE_WARN, "only IPv4 can be used", "%s",
        v6.has_sockets ? "works" : "no socket on ::1");
}

static void check_port(struct report *report, uint16_t port)
{
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX] = "";
    int fd;
    bool is_free = gw_sock_addr_parse("0.0.0.0", port, &addr) == 0 &&
                   gw_sock_open_row(&addr, 1, 0, &fd, error) == 0;
    if (is_free)
        gw_sock_close_row(&fd, 1);
    add(report, "port", is_free ? STATE_OK : STATE_WARN,
        "another program has it: choose another with `listen` or --join", "UDP %u is %s", port,
        is_free ? "free" : "taken");
}

/* Values per fragment that fit an MTU, over IPv4 and IPv6. */
static void check_interface(struct report *report, const char *name)
{
    struct ifreq request = {0};
    char advice[TEXT_MAX];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    int code = fd < 0 ? -1 : ioctl(fd, SIOCGIFMTU, &request);
    if (fd >= 0)
        close(fd);
    if (code != 0)
        return;
    int mtu = request.ifr_mtu;
    snprintf(advice, sizeof(advice), "ip link set %s mtu 1500, or values: %d", name,
             mtu > GW_DATAPATH_HDR_IPV6 ? (mtu - GW_DATAPATH_HDR_IPV6) / 4 : 0);
    add(report, "MTU", mtu >= MTU_WANTED ? STATE_OK : STATE_WARN, advice,
        "%s: %d, up to %d values per fragment (%d over IPv6)", name, mtu,
        (mtu - GW_DATAPATH_HDR_IPV4) / 4, (mtu - GW_DATAPATH_HDR_IPV6) / 4);
}

static void check_interfaces(struct report *report, const char *only)
{
    struct if_nameindex *all = if_nameindex();
    for (struct if_nameindex *at = all; at && at->if_index; at++)
        if (only ? strcmp(only, at->if_name) == 0 : strcmp(at->if_name, "lo") != 0)
            check_interface(report, at->if_name);
    if (all)
        if_freenameindex(all);
}

static int print_json(const struct report *report)
{
    json_t *items = json_array();
    for (uint32_t i = 0; i < report->count; i++) {
        const struct item *item = &report->items[i];
        json_array_append_new(items, json_pack("{s:s, s:s, s:s, s:s}", "item", item->name, "state",
                                               state_names[item->state], "found", item->found,
                                               "advice", item->advice));
    }
    json_t *root = json_pack("{s:o}", "items", items);
    return gw_json_print(root, stdout, JSON_INDENT(2));
}

static void print_text(const struct report *report)
{
    for (uint32_t i = 0; i < report->count; i++) {
        const struct item *item = &report->items[i];
        printf("%-4s  %-17s %s\n", state_names[item->state], item->name, item->found);
        if (*item->advice)
            printf("      %-17s %s\n", "", item->advice);
    }
}

int gw_cmd_check(int argc, char **argv)
{
    static const struct argp argp = {.options = options, .parser = parse_option, .doc = doc};
    static struct report report;
    struct check_args args = {.port = 4791};
    bool is_ready = true;
    int status = GW_EXIT_OK;
    argp_err_exit_status = GW_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &args) != 0)
        return GW_EXIT_USAGE;
    check_system(&report);
    check_sockets(&report);
    check_port(&report, args.port);
    check_interfaces(&report, args.interface);
    for (uint32_t i = 0; i < report.count; i++)
        is_ready &= report.items[i].state != STATE_FAIL;
    if (args.json)
        status = print_json(&report);
    else
        print_text(&report);
    return is_ready ? status : GW_EXIT_FAILURE;
}
