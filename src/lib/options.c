/* Options of a job; see options.h and gradwire.h. */
#include "lib/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ranks/mesh_wire.h"
#include "lib/faults.h"
#include "net/roles/overlay.h"
#include "net/sock_addr.h"

enum {
    LARGEST = 256 << 20, /* bytes: most layers of most networks */
    DEADLINE_MS = 30000,
    DEADLINE_MIN_MS = 100,
    DEADLINE_MAX_MS = 3600 * 1000,
    VALUES_MIN = 16,
    VALUES_MAX = 16000,
    WINDOW_MAX = GW_OVERLAY_WINDOW_MAX,
    SPIN_US = 100,
    SPIN_MAX_US = 1000000,
    THREADS = 1,
    /* Of the options as they were when one of them last went away. */
    SIZE_MIN = offsetof(struct gradwire_options, signals) + sizeof(const char *),
};

/* A variable of the environment; one that is empty counts as not set. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* A number of the environment; what is none, is less, or is no int, is -1, which none accepts. */
static int number_of(const char *text, int least)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value < least || value > INT_MAX ? -1 : (int)value;
}

/* The variables of rank and world: of the first launcher that has set both, else torchrun's. */
static const char *const *launcher(void)
{
    static const char *const names[][2] = {{"RANK", "WORLD_SIZE"},
                                           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (variable(names[i][0]) && variable(names[i][1]))
            return names[i];
    return names[0];
}

/* Of one without the other, the other is -1. */
static void take_place(struct gradwire_options *options)
{
    const char *const *names = launcher();
    const char *rank = variable(names[0]), *world = variable(names[1]);
    if (!rank && !world)
        return;
    options->rank = rank ? number_of(rank, 0) : -1;
    options->world = world ? number_of(world, 1) : -1;
}

static enum gradwire_via via_of(const char *text)
{
    static const char *const names[] = {[GRADWIRE_VIA_INA] = "ina",
                                        [GRADWIRE_VIA_PS] = "ps",
                                        [GRADWIRE_VIA_RING] = "ring",
                                        [GRADWIRE_VIA_DEFAULT] = "default"};
    int via = 0;
    while (via <= GRADWIRE_VIA_DEFAULT && strcmp(text, names[via]) != 0)
        via++;
    return (enum gradwire_via)via; /* one that gradwire_open() refuses, if it is none of them */
}

/* Where torchrun's rank 0 is, with the port above its own; the text lasts as long as the thread. */
static const char *join_of_launcher(void)
{
    static _Thread_local char join[GW_IO_NAME_MAX];
    const char *address = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
    if (!address || !port)
        return NULL;
    int number = number_of(port, 0);
    const char *format = strchr(address, ':') ? "[%s]:%s" : "%s:%s";
    char next[16];
    snprintf(next, sizeof(next), "%u", (unsigned)number + 1);
    snprintf(join, sizeof(join), format, address, number < 0 ? port : next);
    return join;
}

void gradwire_options_init(struct gradwire_options *options, size_t size)
{
    const char *via = variable("GRADWIRE_VIA"), *spin = variable("GRADWIRE_SPIN");
    const char *threads = variable("GRADWIRE_THREADS");
    struct gradwire_options defaults = {
        .size = size,
        .job = variable("GRADWIRE_JOB"),
        .world = 1,
        .join = variable("GRADWIRE_JOIN"),
        .server = variable("GRADWIRE_SERVER"),
        .switch_ = variable("GRADWIRE_SWITCH"),
        .bind = variable("GRADWIRE_BIND"),
        .key_file = variable("GRADWIRE_KEY_FILE"),
        .via = via ? via_of(via) : GRADWIRE_VIA_DEFAULT,
        .deadline_ms = DEADLINE_MS,
        .values = GW_OVERLAY_VALUES,
        .paths = 1,
        .announce = variable("GRADWIRE_ANNOUNCE"),
        .signals = variable("GRADWIRE_SIGNALS"),
        .largest = LARGEST,
        .insecure_key_file = variable("GRADWIRE_INSECURE_KEY_FILE") != NULL,
        .spin_us = spin ? (uint32_t)number_of(spin, 0) : SPIN_US,
        .multicast = variable("GRADWIRE_MULTICAST"),
        .threads = threads ? (uint32_t)number_of(threads, 1) : THREADS,
    };
    if (!defaults.join)
        defaults.join = join_of_launcher();
    take_place(&defaults);
    memcpy(options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

static int refuse(char *error, const char *format, const char *value)
{
    return gw_net_fail(error, GRADWIRE_ERR_INVALID, format, value);
}

static int take_text(const char *option, const char *text, char *to, char *error)
{
    if (snprintf(to, GW_IO_NAME_MAX, "%s", text ? text : "") < GW_IO_NAME_MAX)
        return GRADWIRE_OK;
    return refuse(error, "%s is longer than 255 bytes", option);
}

static int take_texts(const struct gradwire_options *options, struct gw_io_plan *plan, char *error)
{
    int code = take_text("job", options->job ? options->job : "default", plan->job, error);
    if (!code)
        code = take_text("join", options->join, plan->join, error);
    if (!code)
        code = take_text("switch", options->switch_, plan->switch_, error);
    if (!code)
        code = take_text("bind", options->bind, plan->bind, error);
    if (code)
        return code;
    if (plan->join[0] && !gw_sock_addr_is_name(plan->join))
        return refuse(error, "join is %s: not HOST:PORT", plan->join);
    if (plan->switch_[0] && !gw_sock_addr_is_name(plan->switch_))
        return refuse(error, "switch is %s: not HOST:PORT", plan->switch_);
    return GRADWIRE_OK;
}

/* What is known of parts is bounded by their number, and that of bytes by the layout of messages.
 */
static int check_largest(const struct gradwire_options *options, char *error)
{
    uint64_t most = UINT64_C(4) * options->values * GW_BLAST_PACKETS_MAX;
    if (most > GW_MESH_BYTES_MAX)
        most = GW_MESH_BYTES_MAX;
    if (options->largest <= most)
        return GRADWIRE_OK;
    return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                       "largest is %llu: at most %llu bytes with fragments of %u values",
                       (unsigned long long)options->largest, (unsigned long long)most,
                       options->values);
}

/* Says which number is wrong, of the program, or of a word of the environment. Where an option is
 * unsigned, -1 is its largest value. */
static const char *said(char *value, const char *option, long long number, int least,
                        const char *variable_name)
{
    const char *text = variable(variable_name);
    if (text && (uint32_t)number_of(text, least) == (uint32_t)number)
        snprintf(value, GW_IO_NAME_MAX, "%s is %s", variable_name, text);
    else
        snprintf(value, GW_IO_NAME_MAX, "%s is %lld", option, number);
    return value;
}

static int check_either(const char *option, uint32_t number, uint32_t least, uint32_t most,
                        const char *variable_name, char *error)
{
    char value[GW_IO_NAME_MAX];
    if (number >= least && number <= most)
        return GRADWIRE_OK;
    return gw_net_fail(error, GRADWIRE_ERR_INVALID, "%s: %u to %u",
                       said(value, option, number, (int)least, variable_name), least, most);
}

/* Who forgets a variable must not be a job of his own. */
static int check_place(const struct gradwire_options *options, char *error)
{
    const char *const *names = launcher();
    const char *rank = variable(names[0]), *world = variable(names[1]);
    if (rank && !world && options->world == -1)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID, "%s is set, %s is not", names[0], names[1]);
    if (world && !rank && options->rank == -1)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID, "%s is set, %s is not", names[1], names[0]);
    char value[GW_IO_NAME_MAX];
    if (options->world < 1 || options->world > GW_OVERLAY_WORLD_MAX)
        return refuse(error, "%s: 1 to 1024", said(value, "world", options->world, 1, names[1]));
    if (options->rank < 0 || options->rank >= options->world)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "%s, world is %d: rank must be 0 to world - 1",
                           said(value, "rank", options->rank, 0, names[0]), options->world);
    return GRADWIRE_OK;
}

static int check_numbers(const struct gradwire_options *options, char *error)
{
    char value[64];
    snprintf(value, sizeof(value), "%u", options->values);
    if (options->values < VALUES_MIN || options->values > VALUES_MAX)
        return refuse(error, "values is %s: 16 to 16000", value);
    snprintf(value, sizeof(value), "%u", options->window);
    if (options->window == 1 || options->window > WINDOW_MAX ||
        options->window & (options->window - 1))
        return refuse(error, "window is %s: a power of two, 2 to 2048, or 0", value);
    snprintf(value, sizeof(value), "%u", options->paths);
    if (options->paths > GW_DATAPATH_ENTROPIES_MAX)
        return refuse(error, "paths is %s: 1 to 256", value);
    snprintf(value, sizeof(value), "%llu", (unsigned long long)options->rate_bps);
    if (options->rate_bps && (options->rate_bps < GW_OVERLAY_RATE_MIN_BPS ||
                              options->rate_bps > GW_OVERLAY_RATE_MAX_BPS))
        return refuse(error, "rate_bps is %s: 1000000 to 400000000000, or 0", value);
    snprintf(value, sizeof(value), "%u", options->deadline_ms);
    if (options->deadline_ms < DEADLINE_MIN_MS || options->deadline_ms > DEADLINE_MAX_MS)
        return refuse(error, "deadline_ms is %s: 100 to 3600000", value);
    int code = check_largest(options, error);
    if (!code)
        code = check_either("spin_us", options->spin_us, 0, SPIN_MAX_US, "GRADWIRE_SPIN", error);
    return code ? code
                : check_either("threads", options->threads, 1, GW_IO_CHANNELS_MAX,
                               "GRADWIRE_THREADS", error);
}

/* Copies what was given, with defaults for what was left out. */
static int take_options(const struct gradwire_options *given, struct gradwire_options *options,
                        char *error)
{
    if (given->size < SIZE_MIN || given->size > sizeof(*options))
        return refuse(error, "the options are of %s version of the library", "another");
    memset(options, 0, sizeof(*options));
    memcpy(options, given, given->size);
    if (!options->deadline_ms)
        options->deadline_ms = DEADLINE_MS;
    if (!options->values)
        options->values = GW_OVERLAY_VALUES;
    if (!options->paths)
        options->paths = 1;
    if (!options->largest)
        options->largest = LARGEST;
    if (!options->threads)
        options->threads = THREADS;
    return GRADWIRE_OK;
}

/* Adds those of a row of ports; all are different. */
static int take_row(const char *row, struct gw_io_plan *plan, char *error)
{
    uint32_t count = gw_sock_addr_row(row);
    if (count == 0)
        return refuse(error, "server is %s: not HOST:PORT, nor HOST:FIRST-LAST", row);
    if (count > GW_IO_SERVERS_MAX - plan->server_count)
        return refuse(error, "server is %s, and more: at most 16", row);
    for (uint32_t number = 0; number < count; number++) {
        char *name = plan->servers[plan->server_count];
        gw_sock_addr_row_at(row, number, name, GW_IO_NAME_MAX);
        for (uint32_t i = 0; i < plan->server_count; i++)
            if (strcmp(plan->servers[i], name) == 0)
                return refuse(error, "server is %s twice", name);
        plan->server_count++;
    }
    return GRADWIRE_OK;
}

/* Servers, or rows of them, are divided by commas. */
static int take_servers(const char *text, struct gw_io_plan *plan, char *error)
{
    int code = GRADWIRE_OK;
    for (const char *next; *text && !code; text = next) {
        size_t length = strcspn(text, ",");
        char row[GW_IO_NAME_MAX];
        next = text + length + (text[length] == ',');
        if (length == 0 || length >= sizeof(row) || (text[length] && !*next))
            return refuse(error, "server is %s: HOST:PORT, or several with commas between", text);
        snprintf(row, sizeof(row), "%.*s", (int)length, text);
        code = take_row(row, plan, error);
    }
    return code;
}

/* What the environment asks tests to do wrong; each rank draws its own. */
static int take_faults(struct gw_io_plan *plan, char *error)
{
    const char *text = variable(GW_FAULTS_VARIABLE);
    int code = text ? gw_faults_parse(text, &plan->faults, error) : GRADWIRE_OK;
    plan->faults.seed += plan->rank;
    return code;
}

/* Likewise. */
static int check_via(enum gradwire_via via, char *error)
{
    char value[GW_IO_NAME_MAX];
    const char *text = variable("GRADWIRE_VIA");
    if ((uint32_t)via <= GRADWIRE_VIA_DEFAULT)
        return GRADWIRE_OK;
    if (text && via_of(text) == via)
        snprintf(value, sizeof(value), "GRADWIRE_VIA is %s", text);
    else
        snprintf(value, sizeof(value), "via is %d", (int)via);
    return refuse(error, "%s: ina, ps, ring or default", value);
}

/* False: none of the words. */
static bool take_signals(const char *text, struct gw_io_plan *plan)
{
    plan->signals_by_option = text && strcmp(text, "option") == 0;
    return !text || plan->signals_by_option || strcmp(text, "dscp") == 0;
}

/* Reads the key, which what protects packets needs. */
static int take_key(const struct gradwire_options *options, struct gw_io_plan *plan, char *error)
{
    plan->authenticates = options->authenticate || options->encrypt;
    plan->encrypts = options->encrypt != 0;
    if (gw_key_setup() != 0)
        return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "the system gives no random numbers");
    if (!options->key_file && plan->authenticates)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID, "%s needs a key: key_file is not given",
                           plan->encrypts ? "encrypt" : "authenticate");
    if (!options->key_file)
        gw_key_from_text("", 0, &plan->key);
    else if (gw_key_from_file(options->key_file, options->insecure_key_file, &plan->key, error) !=
             0)
        return GRADWIRE_ERR_INVALID;
    return GRADWIRE_OK;
}

/* How results travel of sums that rank 0 adds up. What is protected is so between two, and one that
 * goes to a single rank leaves once anyway. */
static int take_multicast(const char *text, struct gw_io_plan *plan, char *error)
{
    char why[GW_NET_ERROR_MAX];
    plan->hears_groups = !text || strcmp(text, "none") != 0;
    plan->chooses_group = !text && plan->world > 2 && !plan->authenticates;
    if (!text || !plan->hears_groups)
        return GRADWIRE_OK;
    if (gw_sock_addr_resolve(text, &plan->group, why) != 0 ||
        !gw_sock_addr_is_multicast(&plan->group))
        return refuse(error, "multicast is %s: none, or ADDRESS:PORT of a multicast group", text);
    if (plan->authenticates)
        return refuse(error, "multicast is %s: with authenticate or encrypt it must be none", text);
    struct gw_sock_addr last = plan->group;
    gw_sock_addr_advance(&last, plan->channels - 1u);
    if (!gw_sock_addr_is_multicast(&last))
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "multicast is %s: behind it there are no groups for %u threads", text,
                           plan->channels);
    return GRADWIRE_OK;
}

int gw_options_plan(const struct gradwire_options *given, struct gw_io_plan *plan, char *error)
{
    struct gradwire_options options;
    int code = take_options(given, &options, error);
    if (!code)
        code = check_place(&options, error);
    if (!code)
        code = check_numbers(&options, error);
    if (code)
        return code;
    *plan = (struct gw_io_plan){
        .via = options.via,
        .rank = (uint16_t)options.rank,
        .world = (uint16_t)options.world,
        .channels = options.world > 1 ? (uint16_t)options.threads : 1,
        .values = (uint16_t)options.values,
        .window = (uint16_t)options.window,
        .mtu = 4 * options.values,
        .largest = options.largest,
        .paths = (uint16_t)options.paths,
        .rate_bps = options.rate_bps,
        .stall = options.deadline_ms * GW_MS,
        .spin = options.spin_us * GW_US,
    };
    code = take_texts(&options, plan, error);
    if (!code)
        code = take_servers(options.server ? options.server : "", plan, error);
    if (code)
        return code;
    if (!plan->join[0] && !plan->server_count && plan->world > 1)
        return refuse(error, "%s", "neither join nor server is given: where is rank 0?");
    code = check_via(options.via, error);
    if (code)
        return code;
    plan->rings = options.via == GRADWIRE_VIA_DEFAULT && plan->world > 1 && !plan->server_count &&
                  !plan->switch_[0];
    if (gw_notice_parse(options.announce ? options.announce : "no", &plan->notice) != 0)
        return refuse(error,
                      "announce is %s: no, a number of packets from 5 to 75 in steps of 5, or a "
                      "ratio such as 1/4",
                      options.announce);
    if (!take_signals(options.signals, plan))
        return refuse(error, "signals is %s: dscp or option", options.signals);
    if (gw_overlay_transport(options.cc ? options.cc : "smartt", options.lb ? options.lb : "reps",
                             plan->switch_[0], plan->paths, &plan->transport, error) != 0)
        return GRADWIRE_ERR_INVALID;
    if (gw_transport_is_blast(&plan->transport))
        return refuse(error, "cc is %s: that is of calls with a bound, which have no other",
                      options.cc);
    if (gw_overlay_parts_transport(options.lb ? options.lb : "reps", &plan->parts_transport,
                                   error) != 0)
        return GRADWIRE_ERR_INVALID;
    const char *urgency = options.urgency ? options.urgency : "message";
    if (gw_overlay_urgency(urgency, &plan->transport, error) != 0 ||
        gw_overlay_urgency(urgency, &plan->parts_transport, error) != 0)
        return GRADWIRE_ERR_INVALID;
    code = take_faults(plan, error);
    if (code)
        return code;
    plan->datapath = gw_datapath_choose(variable("GRADWIRE_DATAPATH"), error);
    if (!plan->datapath)
        return GRADWIRE_ERR_INVALID;
    code = take_key(&options, plan, error);
    return code ? code : take_multicast(options.multicast, plan, error);
}
