/* `gradwire sim`: its arguments, and what it does without a run; see sim_runs.h for the rest. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/option.h"
#include "cli/report.h"
#include "cli/sim_runs.h"

enum {
    THREADS_MAX = 256,
    SEEDS_MAX = 1000000,
};

enum {
    KEY_SET = 256,
    KEY_SEED,
    KEY_SEEDS,
    KEY_THREADS,
    KEY_OUT,
    KEY_WIRE,
    KEY_PCAP,
    KEY_TIMELINE,
    KEY_DESCRIBE,
    KEY_LIST,
    KEY_JSON,
};

/* Two of its options make no run. */
struct command {
    struct gw_sim_args args;
    bool describe;
    const char *list;
};

static const struct argp_option options[] = {
    {"set", KEY_SET, "KEY=VALUE", 0, "override a key of the scenario (repeatable)", 0},
    {"seed", KEY_SEED, "N", 0, "seed of the run (default: the scenario's)", 0},
    {"seeds", KEY_SEEDS, "K", 0, "run K seeds, from the first upwards", 0},
    {"threads", KEY_THREADS, "N", 0, "simulate with N threads; the result is the same", 0},
    {"out", KEY_OUT, "DIR", 0, "write flows.csv, series.csv and result.json there", 0},
    {"wire", KEY_WIRE, 0, 0, "pass every packet through encode and decode, and compare", 0},
    {"pcap", KEY_PCAP, "FILE", 0, "write what the link metrics.pcap (default: the first) carried",
     0},
    {"timeline", KEY_TIMELINE, "FILE", 0,
     "write what workers of jobs did when, as Chrome's trace events (opens in Perfetto)", 0},
    {"describe", KEY_DESCRIBE, 0, 0, "print the resolved scenario and stop", 0},
    {"list", KEY_LIST, "KIND", 0, "list one of: ", 0}, /* see filter_help() */
    {"json", KEY_JSON, 0, 0, "print one JSON value", 0},
    {0},
};

static const char doc[] =
    "Runs a scenario in the packet-level simulator and prints what its flows did."
    "\vExample:\n"
    "  gradwire sim scenarios/permutation-1024.yaml --set topology.oversubscription=4 --seed 7\n"
    "\nA sweep in the scenario runs every point. docs/simulator.md describes the keys.";

static error_t add_override(struct gw_sim_args *args, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        gw_complain("--set %s: expected KEY=VALUE", text);
        return EINVAL;
    }
    if (args->override_count == GW_SIM_OVERRIDES_MAX) {
        gw_complain("--set: at most %d", GW_SIM_OVERRIDES_MAX);
        return EINVAL;
    }
    *equals = '\0';
    args->overrides[args->override_count++] =
        (struct gw_override){.key = text, .value = equals + 1};
    return 0;
}

/* Complains itself of a value, in one line, and returns EINVAL. */
static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct command *command = state->input;
    struct gw_sim_args *args = &command->args;
    switch (key) {
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        return 0;
    case KEY_SET:
        return add_override(args, text);
    case KEY_SEED:
        args->has_seed = true;
        return gw_option_number("seed", text, 0, INT64_MAX, &args->seed);
    case KEY_SEEDS:
        return gw_option_number("seeds", text, 1, SEEDS_MAX, &args->seeds);
    case KEY_THREADS:
        return gw_option_number("threads", text, 1, THREADS_MAX, &args->threads);
    case KEY_OUT:
        args->out = text;
        return 0;
    case KEY_WIRE:
        args->wire = true;
        return 0;
    case KEY_PCAP:
        args->pcap = text;
        return 0;
    case KEY_TIMELINE:
        args->timeline = text;
        return 0;
    case KEY_DESCRIBE:
        command->describe = true;
        return 0;
    case KEY_LIST:
        command->list = text;
        return 0;
    case KEY_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (args->scenario) {
            gw_complain("sim: '%s': only one scenario can be given", text);
            return EINVAL;
        }
        args->scenario = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Appends to the help of --list what can be listed; argp frees it. */
static char *filter_help(int key, const char *text, void *input)
{
    (void)input;
    if (key != KEY_LIST)
        return (char *)(uintptr_t)text;
    char *kinds = gw_report_kinds(), *whole = NULL;
    if (asprintf(&whole, "%s%s", text, kinds) < 0)
        abort();
    free(kinds);
    return whole;
}

static int list(const char *kind, bool as_json)
{
    int status = gw_report_list(kind, as_json);
    if (status != GW_EXIT_USAGE)
        return status;
    char *kinds = gw_report_kinds();
    gw_complain("--list %s: unknown; one of: %s", kind, kinds);
    free(kinds);
    return status;
}

static int describe(const struct gw_sim_args *args)
{
    char why[GW_WHY_MAX];
    char *text = gw_scenario_describe(args->scenario, args->overrides, args->override_count, why);
    if (!text) {
        gw_complain("%s", why);
        return GW_EXIT_USAGE;
    }
    int status = gw_sim_check(args);
    if (status == GW_EXIT_OK)
        fputs(text, stdout);
    free(text);
    return status;
}

int gw_cmd_sim(int argc, char **argv)
{
    static const struct argp argp = {.options = options,
                                     .parser = parse_option,
                                     .args_doc = "SCENARIO.yaml",
                                     .doc = doc,
                                     .help_filter = filter_help};
    struct command command = {.args = {.seeds = 1, .threads = 1}};
    struct gw_sim_args *args = &command.args;
    char seed_text[24];
    argp_err_exit_status = GW_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &command) != 0)
        return GW_EXIT_USAGE;
    if (command.list)
        return list(command.list, args->json);
    if (!args->scenario) {
        gw_complain("sim: no scenario given; try 'gradwire sim --help'");
        return GW_EXIT_USAGE;
    }
    if (args->has_seed) {
        if (args->override_count == GW_SIM_OVERRIDES_MAX) {
            gw_complain("--set: at most %d with --seed", GW_SIM_OVERRIDES_MAX - 1);
            return GW_EXIT_USAGE;
        }
        snprintf(seed_text, sizeof(seed_text), "%llu", (unsigned long long)args->seed);
        args->overrides[args->override_count++] =
            (struct gw_override){.key = "seed", .value = seed_text};
    }
    return command.describe ? describe(args) : gw_sim_runs(args);
}
