// Shared parts of reports: quantities as text, for people.
#ifndef HECATE_PASSES_COST_EXPLAIN_H
#define HECATE_PASSES_COST_EXPLAIN_H

#include <stdint.h>
#include <stdio.h>

struct hec_text {
    char text[32];
};

struct hec_text hec_text_bytes(double bytes);               // "4.5 MiB"
struct hec_text hec_text_rate(double rate, const char *of); // "12.5 GB/s", of "B/s"
struct hec_text hec_text_us(double us);                     // "840 us", "12.3 ms"
struct hec_text hec_text_long(double seconds);              // "41 minutes", "5.6 days"

struct hec_machine;
struct hpl_policy;

// Prints a device and the links, a line each: rates and where they come from.
void hec_explain_machine(const struct hec_machine *machine, FILE *out);

// Prints how programs move experts where simulations charge another way, that of the policy's authors; else nothing.
void hec_explain_programs(const struct hpl_policy *policy, FILE *out);

#endif
