/* A line of a CSV file in its columns. There is no quoting: no value has a comma. */
#ifndef GW_WORKLOAD_CSV_LINE_H
#define GW_WORKLOAD_CSV_LINE_H

#include <stdint.h>

/*
 * Cuts `line` at its commas and stores the first `room` columns, without the blanks around them.
 * Returns how many there are; the columns point into the line.
 */
uint32_t gw_csv_split(char *line, char *columns[], uint32_t room);

/* The text without the blanks around it, in place. */
char *gw_csv_trim(char *text);

#endif
