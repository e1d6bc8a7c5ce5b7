/*
 * What every pluggable algorithm says of itself, and the registries that list them.
 *
 * An algorithm is one file that defines one ops table; the table begins with a struct gw_algo. One
 * line in the .def file of its folder makes it known: lookup by name, `--list`, the scenario
 * schema, and the conformance test all read the registry.
 *
 * Its options live in a plain struct (the cfg), described by a table of parameters. The cfg is
 * filled with defaults, then a preset, then single settings, and is immutable once a flow or
 * port uses it.
 */
#ifndef GW_CORE_ALGO_H
#define GW_CORE_ALGO_H

#include <stddef.h>
#include <stdint.h>

/* Each type says how the text is parsed (base/units.h) and what the cfg field is. */
enum gw_param_type {
    GW_PARAM_BOOL,  /* bool */
    GW_PARAM_COUNT, /* uint32_t */
    GW_PARAM_Q16,   /* gw_q16, written as a decimal number or a percentage */
    GW_PARAM_TIME,  /* gw_time */
    GW_PARAM_BYTES, /* uint64_t */
    GW_PARAM_SIZES, /* struct gw_size_list, written as sizes in bytes with commas between them */
    GW_PARAM_RATE,  /* uint64_t, bit/s */
    GW_PARAM_ENUM,  /* uint32_t, index into the words of `choices` */
    GW_PARAM_TEXT,  /* char[GW_PARAM_TEXT_MAX], a file name */
};

enum {
    GW_SIZES_MAX = 7, /* in a list: one for each class of data */
};

struct gw_size_list {
    uint64_t bytes[GW_SIZES_MAX]; /* those behind `count` are 0 */
    uint64_t count;               /* 0: the list is empty */
};

struct gw_param {
    const char *name; /* as in a scenario: lower case, underscores */
    enum gw_param_type type;
    size_t offset; /* of the field in the cfg */
    const char
        *initial; /* default, as text; NULL: the field is 0, and `help` says what that means */
    int64_t least, most; /* of a number, in units of the field; most 0: as much as fits */
    const char *choices; /* GW_PARAM_ENUM: words separated by '|' */
    const char *help;    /* meaning, unit, and in parentheses at the end the default's source */
    const char *unless;  /* a list of the same table, beside which this says nothing; NULL: none */
};

/*
 * A row of a parameter table for a field that is called as the parameter. Behind the help may
 * stand other members of the row: its limits.
 */
#define GW_PARAM(cfg_type, kind, field, initial_text, ...)                                         \
    {                                                                                              \
        .name = #field, .type = GW_PARAM_##kind, .offset = offsetof(cfg_type, field),              \
        .initial = initial_text, .help = __VA_ARGS__                                               \
    }

/* The same for a field of a struct within the cfg, for options that several have alike. */
#define GW_PARAM_IN(cfg_type, member, kind, field, initial_text, help_text)                        \
    {                                                                                              \
        .name = #field, .type = GW_PARAM_##kind, .offset = offsetof(cfg_type, member.field),       \
        .initial = initial_text, .help = help_text                                                 \
    }

/* Likewise with words to choose from; the first is the default. */
#define GW_CHOICE_IN(cfg_type, member, field, words, help_text)                                    \
    {                                                                                              \
        .name = #field, .type = GW_PARAM_ENUM, .offset = offsetof(cfg_type, member.field),         \
        .choices = words, .help = help_text                                                        \
    }

/* A named set of settings: "fi=1.25 mi=5". */
struct gw_preset {
    const char *name;
    const char *settings;
    const char *help;
};

struct gw_algo {
    const char *name;
    const char *summary; /* one line for --list */
    const char *source;  /* paper and section */
    const struct gw_param *params;
    const struct gw_preset *presets;
    uint32_t param_count;
    uint32_t preset_count;
    /* What is wrong with options together: a sentence that begins with a parameter's name; NULL:
     * nothing. May be NULL itself. */
    const char *(*check)(const void *cfg);
    uint32_t cfg_size;   /* bytes of the options struct; at most GW_ALGO_CFG_MAX */
    uint32_t state_size; /* bytes of private memory per flow or port */
};

enum {
    GW_ALGO_CFG_MAX = 4096,
    GW_PARAM_TEXT_MAX = 256,
};

/* Memory for the options of any algorithm. */
union gw_algo_cfg {
    uint64_t align;
    unsigned char bytes[GW_ALGO_CFG_MAX];
};

struct gw_registry {
    const char *kind; /* "cc", "lb", ...: the word of the scenario and of --list */
    const struct gw_algo *const *algos; /* each is the first member of its ops table */
    uint32_t count;
};

/* The entry called `name`, or NULL. */
const struct gw_algo *gw_registry_find(const struct gw_registry *registry, const char *name);

/* Fills `cfg` (cfg_size bytes) with every parameter's default. */
void gw_algo_defaults(const struct gw_algo *algo, void *cfg);

/*
 * Sets one parameter from text. Returns 0; GW_ERR_UNKNOWN when the algorithm has no such parameter;
 * or the parser's error (base/units.h), in which case cfg is unchanged.
 */
int gw_algo_set(const struct gw_algo *algo, void *cfg, const char *name, const char *text);

/* Applies a preset. Returns 0, or GW_ERR_UNKNOWN. */
int gw_algo_preset(const struct gw_algo *algo, void *cfg, const char *name);

#endif
