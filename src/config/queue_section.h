/*
 * A section `queue:` wherever it stands, in a scenario or in the config of a switch on sockets: the
 * discipline with its parameters, its preset, and how much a port may hold (`capacity`).
 */
#ifndef GW_CONFIG_QUEUE_SECTION_H
#define GW_CONFIG_QUEUE_SECTION_H

#include "config/document.h"
#include "config/schema.h"
#include "core/qdisc/qdisc.h"
#include "core/switch/shared_buffer.h"

/* What the ports of a switch share (core/switch/shared_buffer.h); keys that every section has. */
struct gw_queue_shared {
    uint64_t shared;
    gw_q16 shared_alpha;
    gw_q16 shared_alpha_important;
};

/* A section that is read; the caller keeps document and value. */
struct gw_queue_section {
    const struct gw_document *document;
    const struct gw_doc_value *value; /* NULL: it is not there */
    const struct gw_qdisc_ops *qdisc;
    struct gw_queue_shared keys;
    struct gw_schema schema; /* of all its keys */
};

/*
 * Reads it: the discipline, `initial` where nothing is said, its parameters into `cfg`, the keys of
 * what is shared, and the reader's own keys by `own`. Expects document and value to be set; sets
 * the rest, and `schema` refers to the section. Returns 0, or a negative error with document->why
 * set, as all functions here.
 */
int gw_queue_section_read(struct gw_queue_section *section, const char *initial,
                          union gw_algo_cfg *cfg, const struct gw_schema_part *own);

/* Reads the value of `capacity`, a size or, where there is one, a multiple of the bandwidth-delay
 * product; 0: there is none. */
int gw_queue_section_capacity(const struct gw_queue_section *section, const char *text,
                              uint32_t bdp, uint64_t *bytes);

/* Whether a port may hold that much: it must hold `what`, which takes `least` bytes. */
int gw_queue_section_check(const struct gw_queue_section *section, uint64_t capacity,
                           const char *what, uint32_t least);

/* What is shared, if a port may hold `what`, which takes `least` bytes, while it is alone. */
int gw_queue_section_shared(const struct gw_queue_section *section, const char *what,
                            uint32_t least, struct gw_shared_buffer *shared);

/* Whether the discipline marks as it is set, so that its threshold can be lowered. */
bool gw_queue_section_marks(const struct gw_qdisc_ops *qdisc, const union gw_algo_cfg *cfg,
                            uint32_t capacity);

#endif
