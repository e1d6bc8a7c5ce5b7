/*
 * The messages of training jobs in reports: how long they took, and how much of them arrived.
 */
#ifndef GW_CLI_REPORT_MESSAGES_H
#define GW_CLI_REPORT_MESSAGES_H

#include "cli/report.h"

/* The object `messages` of a job: `push`, `pull` and `all`; NULL: its messages are not counted. */
json_t *gw_report_messages_json(const struct gw_run_report *run, uint32_t job);

/* Lines about a job whose messages were counted. */
void gw_report_messages_text(const struct gw_run_report *run, uint32_t job);

#endif
