/* Options of a job; see options.h and gradwire.h. */
#include "lib/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/overlay.h"

enum {
    DEADLINE_MS = 30000,
    DEADLINE_MAX_MS = 3600 * 1000,
    VALUES_MIN = 16,
    VALUES_MAX = 16000,
    WINDOW_MIN = 2,
    WINDOW_MAX = 16384,
};

/* First of the variables that is set, or NULL. */
static const char *first_of(const char *const *names)
{
    for (; *names; names++)
        if (getenv(*names))
            return getenv(*names);
    return NULL;
}

static void take_number(int *number, const char *const *names)
{
    const char *text = first_of(names);
    char *end;
    long value = text ? strtol(text, &end, 10) : 0;
    if (text && *text && *end == '\0' && value >= 0 && value <= GW_OVERLAY_WORLD_MAX)
        *number = (int)value;
}

static void take_via(enum gradwire_via *via)
{
    static const char *const names[] = {
        [GRADWIRE_VIA_INA] = "ina", [GRADWIRE_VIA_PS] = "ps", [GRADWIRE_VIA_RING] = "ring"};
    const char *text = getenv("GRADWIRE_VIA");
    for (int i = 0; text && i < 3; i++)
        if (strcmp(text, names[i]) == 0)
            *via = (enum gradwire_via)i;
}

/* Where torchrun's rank 0 is, with the port above its own; the text lasts as long as the thread. */
static const char *join_of_launcher(void)
{
    static _Thread_local char join[GW_IO_NAME_MAX];
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    if (!address || !port)
        return NULL;
    snprintf(join, sizeof(join), strchr(address, ':') ? "[%s]:%d" : "%s:%d", address,
             atoi(port) + 1);
    return join;
}

void gradwire_options_init(struct gradwire_options *options, size_t size)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                        NULL};
    static const char *const worlds[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                         "SLURM_NTASKS", NULL};
    struct gradwire_options defaults = {
        .size = size,
        .job = getenv("GRADWIRE_JOB"),
        .world = 1,
        .join = getenv("GRADWIRE_JOIN"),
        .server = getenv("GRADWIRE_SERVER"),
        .switch_ = getenv("GRADWIRE_SWITCH"),
        .bind = getenv("GRADWIRE_BIND"),
        .key_file = getenv("GRADWIRE_KEY_FILE"),
        .deadline_ms = DEADLINE_MS,
        .values = GW_OVERLAY_VALUES,
        .window = GW_OVERLAY_WINDOW,
    };
    if (!defaults.join)
        defaults.join = join_of_launcher();
    take_number(&defaults.rank, ranks);
    take_number(&defaults.world, worlds);
    take_via(&defaults.via);
    memcpy(options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

static int refuse(char *error, const char *format, const char *value)
{
    return gw_net_fail(error, GRADWIRE_ERR_INVALID, format, value);
}

/* Copies a text; false: it is too long. */
static bool take_text(char *to, const char *text)
{
    return snprintf(to, GW_IO_NAME_MAX, "%s", text ? text : "") < GW_IO_NAME_MAX;
}

static uint64_t chance(double part)
{
    return (uint64_t)(part * 4294967296.0);
}

static int check_numbers(const struct gradwire_options *options, char *error)
{
    char value[64];
    snprintf(value, sizeof(value), "%d", options->world);
    if (options->world < 1 || options->world > GW_OVERLAY_WORLD_MAX)
        return refuse(error, "world is %s: 1 to 1024", value);
    snprintf(value, sizeof(value), "%d, world is %d", options->rank, options->world);
    if (options->rank < 0 || options->rank >= options->world)
        return refuse(error, "rank is %s: rank must be 0 to world - 1", value);
    snprintf(value, sizeof(value), "%u", options->values);
    if (options->values < VALUES_MIN || options->values > VALUES_MAX)
        return refuse(error, "values is %s: 16 to 16000", value);
    snprintf(value, sizeof(value), "%u", options->window);
    if (options->window < WINDOW_MIN || options->window > WINDOW_MAX ||
        options->window & (options->window - 1))
        return refuse(error, "window is %s: a power of two, 2 to 16384", value);
    snprintf(value, sizeof(value), "%u", options->deadline_ms);
    if (options->deadline_ms < 100 || options->deadline_ms > DEADLINE_MAX_MS)
        return refuse(error, "deadline_ms is %s: 100 to 3600000", value);
    const double parts[] = {options->loss, options->duplicate, options->delay};
    for (int i = 0; i < 3; i++) {
        snprintf(value, sizeof(value), "%g", parts[i]);
        if (!(parts[i] >= 0 && parts[i] <= 0.5))
            return refuse(error, "loss, duplicate or delay is %s: 0 to 0.5", value);
    }
    return GRADWIRE_OK;
}

int gw_options_plan(const struct gradwire_options *given, struct gw_io_plan *plan, char *error)
{
    struct gradwire_options options;
    gradwire_options_init(&options, sizeof(options));
    if (given->size < sizeof(size_t) || given->size > sizeof(options))
        return refuse(error, "the options are of %s version of the library", "another");
    memcpy(&options, given, given->size);
    int code = check_numbers(&options, error);
    if (code)
        return code;
    *plan = (struct gw_io_plan){
        .via = options.via,
        .tags = options.tag != 0,
        .rank = (uint16_t)options.rank,
        .world = (uint16_t)options.world,
        .values = (uint16_t)options.values,
        .window = (uint16_t)options.window,
        .deadline = options.deadline_ms * GW_MS,
        .faults = {.lose_q32 = chance(options.loss),
                   .duplicate_q32 = chance(options.duplicate),
                   .delay_q32 = chance(options.delay),
                   .seed = options.seed + (uint64_t)options.rank},
    };
    if (!take_text(plan->job, options.job ? options.job : "default") ||
        !take_text(plan->join, options.join) || !take_text(plan->server, options.server) ||
        !take_text(plan->switch_, options.switch_) || !take_text(plan->bind, options.bind))
        return refuse(error, "job, join, server, switch or bind is longer than %s bytes", "255");
    if (!plan->join[0] && !plan->server[0] && plan->world > 1)
        return refuse(error, "%s", "neither join nor server is given: where is rank 0?");
    if (plan->switch_[0] && !plan->server[0])
        return refuse(error, "switch is %s, but no server is given", plan->switch_);
    if ((uint32_t)plan->via > GRADWIRE_VIA_RING)
        return refuse(error, "%s", "via is none of ina, ps and ring");
    if (plan->via == GRADWIRE_VIA_RING)
        return gw_net_fail(error, GRADWIRE_ERR_UNSUPPORTED, "via ring is not built yet");
    if (gw_key_setup() != 0)
        return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "the system gives no random numbers");
    if (!options.key_file)
        gw_key_from_text("", 0, &plan->key);
    else if (gw_key_from_file(options.key_file, &plan->key, error) != 0)
        return GRADWIRE_ERR_INVALID;
    return GRADWIRE_OK;
}
