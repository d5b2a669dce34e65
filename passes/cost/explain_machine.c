// The machine, as reports show it: measured, stated and assumed rates.
#include "passes/cost/explain.h"
#include "passes/cost/machine.h"

static void print_device(const struct hec_machine *m, FILE *out) {
    if (m->measured_device) {
        fprintf(out, "  a device   measured (%s): GEMMs up to %s, loops up to %s\n",
                m->times.device, hec_text_rate(m->flops, "FLOPS").text,
                hec_text_rate(m->memory_bandwidth, "B/s").text);
        return;
    }
    fprintf(out, "  a device   %s at %.0f %%, memory %s at %.0f %%%s\n",
            hec_text_rate(m->flops, "FLOPS").text, 100 * hec_reached_of_flops,
            hec_text_rate(m->memory_bandwidth, "B/s").text, 100 * hec_reached_of_bandwidth,
            m->assumed_device ? "; assumed (section cluster)" : "");
}

static void print_link(double bandwidth, double latency, const char *of, bool measured, FILE *out) {
    fprintf(out, "%s a %s, %s", hec_text_rate(bandwidth, "B/s").text, of,
            hec_text_us(1e6 * latency).text);
    if (measured) fputs(" (measured)", out);
}

void hec_explain_machine(const struct hec_machine *m, FILE *out) {
    print_device(m, out);
    if (m->nodes * m->devices == 1) return;
    const bool all = m->measured_intra && (m->measured_inter || m->nodes == 1);
    fputs("  links      ", out);
    print_link(m->intra_bandwidth, m->intra_latency, "device", m->measured_intra, out);
    if (m->nodes > 1) {
        fputs("; ", out);
        print_link(m->inter_bandwidth, m->inter_latency, "node", m->measured_inter, out);
    }
    const bool some = m->measured_intra || m->measured_inter;
    if (!all) fprintf(out, "; %sat %.0f %%", some ? "the other " : "", 100 * hec_reached_of_link);
    fprintf(out, "%s\n", m->assumed_links ? "; assumed (section cluster)" : "");
}
