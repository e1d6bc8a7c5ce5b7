/* `gradwire thresholds`: the S and L of queues that drop by worth, for a model and a port. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/option.h"
#include "workload/model/drop_expect.h"
#include "workload/model/drop_plan.h"
#include "workload/model/drop_trial.h"

enum {
    KEY_ARRIVAL = 256,
    KEY_SERVICE,
    KEY_BUFFER,
    KEY_SMALL,
    KEY_PACKET,
    KEY_QUEUES,
    KEY_COSTS,
    KEY_FORMULA,
    KEY_TRIAL,
    KEY_SIMULATE,
    KEY_JSON,
    WHY_MAX = 512,
    SIMULATE_MAX = 1000000000, /* arrivals: some minutes */
    SEED = 1,
};

#define BUFFER_MAX (UINT64_C(1) << 31) /* a queue counts its bytes in 32 bits */

struct thresholds_args {
    const char *model;
    const char *costs; /* NULL: the default */
    uint64_t arrival_bps;
    uint64_t service_bps;
    struct gw_drop_port port;
    uint64_t trial;    /* arrivals, for frequent losses; 0: none */
    uint64_t simulate; /* arrivals; 0: none */
    bool json;
};

static const struct argp_option options[] = {
    {"arrival", KEY_ARRIVAL, "RATE", 0, "what arrives for the port, of all layers (needed)", 0},
    {"service", KEY_SERVICE, "RATE", 0, "what the port sends (100Gbps)", 0},
    {"buffer", KEY_BUFFER, "BYTES", 0, "of the port, for all its queues (512KB)", 0},
    {"small", KEY_SMALL, "THETA", 0, "part of the packets that is unimportant (0.5)", 0},
    {"packet", KEY_PACKET, "BYTES", 0, "mean size of a packet (1500)", 0},
    {"queues", KEY_QUEUES, "N", 0, "data queues, 1 to 7; 6 leave best effort alone (7)", 0},
    {"costs", KEY_COSTS, "FILE.csv", 0, "extra rounds by loss, instead of figure 5 of DLCP", 0},
    {"formula", KEY_FORMULA, "NAME", 0, "of losses: joint, or paper, that of appendix B (joint)",
     0},
    {"trial", KEY_TRIAL, "N", 0,
     "expect losses as a trial of N arrivals has them where it refutes the formula (10000000)", 0},
    {"simulate", KEY_SIMULATE, "N", 0,
     "try the thresholds out: N Poisson arrivals through the discipline itself", 0},
    {"json", KEY_JSON, 0, 0, "print one JSON value", 0},
    {0},
};

static const char doc[] =
    "Finds for each queue of a port with the discipline `dlcp` the thresholds above which "
    "unimportant packets (S) and all packets (L) are dropped, so that the losses cost the fewest "
    "rounds of training. Layer x of n goes to queue floor(x N / n)."
    "\vExample:\n  gradwire thresholds resnet50 --arrival 95Gbps --buffer 512KB\n";

static error_t parse_rate(const char *option, const char *text, uint64_t *rate)
{
    return gw_parse_rate(text, rate) == 0
               ? 0
               : gw_option_refuse(option, text, "a rate such as 100Gbps");
}

static error_t parse_size(int key, const char *text, struct gw_drop_port *port)
{
    uint64_t value;
    switch (key) {
    case KEY_BUFFER:
        if (gw_parse_bytes(text, &port->buffer) == 0 && port->buffer <= BUFFER_MAX)
            return 0;
        return gw_option_refuse("buffer", text, "a size up to 2 GiB, such as 512KB");
    case KEY_PACKET:
        if (gw_parse_bytes(text, &value) != 0 || value < 64 || value > 65536)
            return gw_option_refuse("packet", text, "a size from 64 B to 64 KiB");
        port->packet = (uint32_t)value;
        return 0;
    default:
        if (gw_option_number("queues", text, 1, GW_DROP_QUEUES_MAX, &value) != 0)
            return EINVAL;
        port->queues = (uint32_t)value;
        return 0;
    }
}

static error_t finish(const struct thresholds_args *args)
{
    if (!args->model)
        gw_complain("thresholds: of which model? 'gradwire model' lists them");
    else if (!args->arrival_bps)
        gw_complain("thresholds: missing: --arrival=RATE");
    else
        return 0;
    return EINVAL;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct thresholds_args *args = state->input;
    uint64_t chance_q32;
    switch (key) {
    case KEY_ARRIVAL:
        return parse_rate("arrival", text, &args->arrival_bps);
    case KEY_SERVICE:
        return parse_rate("service", text, &args->service_bps);
    case KEY_BUFFER:
    case KEY_PACKET:
    case KEY_QUEUES:
        return parse_size(key, text, &args->port);
    case KEY_SMALL:
        if (gw_parse_chance(text, &chance_q32) != 0 || chance_q32 == 0 ||
            chance_q32 >= UINT64_C(1) << 32)
            return gw_option_refuse("small", text, "a part between 0 and 1, or a percentage");
        args->port.small = (double)chance_q32 / 4294967296.0;
        return 0;
    case KEY_COSTS:
        args->costs = text;
        return 0;
    case KEY_FORMULA:
        args->port.paper = strcmp(text, "paper") == 0;
        return args->port.paper || strcmp(text, "joint") == 0
                   ? 0
                   : gw_option_refuse("formula", text, "joint or paper");
    case KEY_TRIAL:
        return gw_option_number("trial", text, 0, SIMULATE_MAX, &args->trial);
    case KEY_SIMULATE:
        return gw_option_number("simulate", text, 1, SIMULATE_MAX, &args->simulate);
    case KEY_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        return 0;
    case ARGP_KEY_ARG:
        if (args->model) {
            gw_complain("thresholds: '%s': one model is enough", text);
            return EINVAL;
        }
        args->model = text;
        return 0;
    case ARGP_KEY_END:
        return finish(args);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Below what rounding may make of a few thousand steps, no digit is worth printing. */
static double shown(double value)
{
    return value < 1e-12 ? 0 : value;
}

/* Six digits, so that the last bits of a sum do not show. */
static json_t *real(double value)
{
    char text[32];
    double rounded = 0;
    snprintf(text, sizeof(text), "%.6g", shown(value));
    sscanf(text, "%lf", &rounded);
    return json_real(rounded);
}

static json_t *list_json(const struct gw_drop_plan *plan, uint32_t queues, bool limits)
{
    json_t *list = json_array();
    for (uint32_t q = 0; q < queues; q++)
        json_array_append_new(list, json_integer((json_int_t)(limits ? plan->queues[q].limit
                                                                     : plan->queues[q].threshold)));
    return list;
}

/* What else is known of thresholds that were tried out. */
struct outcome {
    struct gw_drop_trial trial;
    struct gw_drop_plan paper; /* the same thresholds by the paper's formula */
};

static int try_out(struct outcome *outcome, const struct gw_drop_plan *plan,
                   const struct thresholds_args *args, char *why)
{
    struct gw_drop_port port = args->port;
    port.paper = true;
    outcome->paper = *plan;
    gw_drop_plan_rate(&outcome->paper, &port);
    return gw_drop_trial_run(&outcome->trial, plan, &port, args->simulate, SEED, why, WHY_MAX);
}

/* What was seen of a kind of packets. */
static void add_seen(json_t *row, const char *name, const struct gw_drop_seen *seen)
{
    json_object_set_new(row, name,
                        json_pack("{s:I, s:I, s:o, s:o}", "arrived", (json_int_t)seen->arrived,
                                  "lost", (json_int_t)seen->lost, "loss", real(seen->loss), "error",
                                  real(seen->error)));
}

static json_t *queue_json(const struct gw_drop_choice *choice, uint32_t queue, double load)
{
    return json_pack("{s:i, s:o, s:I, s:I, s:o, s:b, s:o, s:b, s:o}", "queue", (int)queue, "load",
                     real(load), "threshold", (json_int_t)choice->threshold, "limit",
                     (json_int_t)choice->limit, "small_loss", real(choice->loss.small),
                     "small_tried", choice->small_tried, "large_loss", real(choice->loss.large),
                     "large_tried", choice->large_tried, "cost", real(choice->cost));
}

static int print_json(const struct gw_drop_plan *plan, const struct gw_drop_port *port,
                      const struct outcome *outcome)
{
    json_t *table = json_array();
    for (uint32_t q = 0; q < port->queues; q++) {
        json_t *row = queue_json(&plan->queues[q], q + 1, port->loads[q]);
        if (outcome) {
            add_seen(row, "small_seen", &outcome->trial.queues[q][GW_DROP_SMALL]);
            add_seen(row, "large_seen", &outcome->trial.queues[q][GW_DROP_LARGE]);
            json_object_set_new(row, "small_paper", real(outcome->paper.queues[q].loss.small));
            json_object_set_new(row, "large_paper", real(outcome->paper.queues[q].loss.large));
        }
        json_array_append_new(table, row);
    }
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:o}", "queues", table, "cost", real(plan->cost), "thresholds",
        list_json(plan, port->queues, false), "limits", list_json(plan, port->queues, true),
        "threshold", (json_int_t)plan->threshold, "step", real((double)plan->step / GW_Q16_ONE));
    return gw_json_print(json, stdout, JSON_INDENT(2));
}

static void print_list(const char *key, const struct gw_drop_plan *plan, uint32_t queues,
                       bool limits)
{
    printf("  %s: [", key);
    for (uint32_t q = 0; q < queues; q++)
        printf("%s%" PRIu64, q ? ", " : "",
               limits ? plan->queues[q].limit : plan->queues[q].threshold);
    puts("]");
}

static void print_seen(const struct gw_drop_trial *trial, uint32_t queues)
{
    printf("\nSeen, with twice the standard deviation:\n\n%-5s %24s %24s\n", "queue", "small_loss",
           "large_loss");
    for (uint32_t q = 0; q < queues; q++) {
        printf("%-5u", q + 1);
        for (uint32_t kind = 0; kind < GW_DROP_KINDS; kind++)
            printf(" %12.3g +- %8.2g", trial->queues[q][kind].loss,
                   2 * trial->queues[q][kind].error);
        putchar('\n');
    }
}

static char mark(bool tried)
{
    return tried ? '*' : ' ';
}

static void print_text(const struct gw_drop_plan *plan, const struct gw_drop_port *port,
                       const struct outcome *outcome)
{
    bool tried = false;
    printf("%-5s %7s %10s %10s %12s %12s %10s\n", "queue", "load", "S", "L", "small_loss",
           "large_loss", "cost");
    for (uint32_t q = 0; q < port->queues; q++) {
        const struct gw_drop_choice *choice = &plan->queues[q];
        printf("%-5u %7.4f %10" PRIu64 " %10" PRIu64 " %11.3g%c %11.3g%c %10.3g\n", q + 1,
               port->loads[q], choice->threshold, choice->limit, shown(choice->loss.small),
               mark(choice->small_tried), shown(choice->loss.large), mark(choice->large_tried),
               shown(choice->cost));
        tried = tried || choice->small_tried || choice->large_tried;
    }
    if (tried)
        puts("* as tried out, which refutes the formula; the others are by it");
    if (outcome)
        print_seen(&outcome->trial, port->queues);
    printf("\nThe losses cost %.3g rounds. For a scenario or a switch:\n\nqueue:\n  kind: dlcp\n",
           shown(plan->cost));
    print_list("thresholds", plan, port->queues, false);
    print_list("limits", plan, port->queues, true);
    printf("\nThe nearest sequence T (1, 1 + d, ...):\n\n  threshold: %" PRIu64 "\n  step: %.4f\n",
           plan->threshold, (double)plan->step / GW_Q16_ONE);
}

static int find(struct thresholds_args *args)
{
    struct gw_drop_port *port = &args->port;
    struct gw_drop_plan plan;
    struct outcome outcome;
    struct gw_model model;
    char why[WHY_MAX];
    int error = gw_model_load(&model, args->model, why, sizeof(why));
    if (!error && args->costs)
        error = gw_drop_costs_load(&port->costs, args->costs, port->queues, why, sizeof(why));
    else if (!error)
        gw_drop_costs_default(&port->costs, port->queues);
    if (!error) {
        gw_drop_port_load(port, &model, (double)args->arrival_bps / (double)args->service_bps);
        error = gw_drop_plan_make(&plan, port, why, sizeof(why));
    }
    if (!error && !port->paper)
        gw_drop_expect(&plan, port, args->trial);
    if (!error && args->simulate)
        error = try_out(&outcome, &plan, args, why);
    int status = error ? GW_EXIT_USAGE : GW_EXIT_OK;
    if (error)
        gw_complain("thresholds: %s", why);
    else if (args->json)
        status = print_json(&plan, port, args->simulate ? &outcome : NULL);
    else
        print_text(&plan, port, args->simulate ? &outcome : NULL);
    gw_model_free(&model);
    return status;
}

int gw_cmd_thresholds(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options, .parser = parse_option, .args_doc = "NAME|FILE.csv", .doc = doc};
    struct thresholds_args args = {
        .service_bps = UINT64_C(100000000000),
        .trial = 10000000, /* about a second */
        .port = {.queues = GW_DROP_QUEUES_MAX, .small = 0.5, .buffer = 512000, .packet = 1500},
    };
    argp_err_exit_status = GW_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &args) != 0)
        return GW_EXIT_USAGE;
    return find(&args);
}
