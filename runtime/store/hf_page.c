// Reads rules of names from a page's text.
#include "runtime/store/hf_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MOST = 16 };

static const char *const forms[] = {
    [HRT_HF_SAME] = "same",           [HRT_HF_VECTOR] = "vector", [HRT_HF_ROW] = "row",
    [HRT_HF_STRAIGHT] = "straight",   [HRT_HF_TURNED] = "turned", [HRT_HF_TURNED_IN] = "turned_in",
    [HRT_HF_DEPTHWISE] = "depthwise",
};

struct reader {
    char *why;
    size_t room;
};

static bool refuse(const struct reader *reader, const char *word, const char *problem) {
    snprintf(reader->why, reader->room, "`%.100s` %s", word, problem);
    return false;
}

// The next word, behind blanks; NULL: there is none. Words end where they are.
static char *next_word(char **at) {
    char *word = *at + strspn(*at, " \t\n");
    const size_t length = strcspn(word, " \t\n");
    if (!length) return NULL;
    *at = word + length + (word[length] != '\0');
    word[length] = '\0';
    return word;
}

// A digit, a slash, a digit.
static bool read_part(const char *word, struct hrt_hf_layout *layout) {
    int part, parts, used = 0;
    if (sscanf(word, "%2d/%2d%n", &part, &parts, &used) != 2 || word[used]) return false;
    if (part < 1 || part > parts || parts > PARTS_MOST) return false;
    layout->part = part - 1;
    layout->parts = parts;
    return true;
}

// "of:wq+wk+wv": the last words of all parts' paths, as many as there are parts.
static bool read_joined(char *word, struct hrt_hf_layout *layout) {
    static const char begin[] = "of:";
    int words = 1;
    if (strncmp(word, begin, strlen(begin)) != 0) return false;
    word += strlen(begin);
    layout->joined = word;
    for (; *word; word++) {
        if (*word != '+') continue;
        *word = ' ';
        words++;
    }
    return words == layout->parts;
}

static bool read_form(const char *word, struct hrt_hf_layout *layout) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i], word) != 0) continue;
        layout->form = (enum hrt_hf_form)i;
        return true;
    }
    return false;
}

static bool read_words(const struct reader *reader, char *at, struct hrt_hf_layout *layout) {
    char *word = next_word(&at);
    if (!word || !read_form(word, layout))
        return refuse(reader, word ? word : layout->name,
                      word ? "is no form: same, vector, row, straight, turned, turned_in and "
                             "depthwise are"
                           : "needs a form: same, vector, row, straight, turned, turned_in or "
                             "depthwise");
    while ((word = next_word(&at))) {
        if (strcmp(word, "all") == 0)
            layout->together = true;
        else if (strcmp(word, "interleaved") == 0)
            layout->interleaved = true;
        else if (!read_part(word, layout) && !read_joined(word, layout))
            return refuse(reader, word,
                          "is none of all, interleaved, a part such as 1/2, and behind it of:a+b");
    }
    if (layout->joined && (layout->interleaved || layout->together))
        return refuse(reader, layout->name,
                      "has parts of their own widths: neither in turn nor all");
    if (layout->interleaved && layout->parts < 2)
        return refuse(reader, layout->name, "is interleaved, and has no parts");
    return true;
}

// Layers and experts that a path tells apart must be told apart there.
static bool check_places(const struct reader *reader, const struct hrt_hf_rule *rule) {
    const struct hrt_hf_layout *layout = &rule->layout[0];
    const char *ours = rule->ours, *theirs = layout->name;
    if (strlen(ours) > HRT_HF_PAGE_NAME || strlen(theirs) > HRT_HF_PAGE_NAME)
        return refuse(reader, ours, "or its name there is too long");
    if (!strstr(ours, "{}") != !strstr(theirs, "{}"))
        return refuse(reader, theirs, "must have {}, the layer, where the path has it");
    const bool one = strstr(ours, "{e}") && !layout->together;
    if (one != (strstr(theirs, "{e}") != NULL) || (layout->together && !strstr(ours, "{e}")))
        return refuse(reader, theirs,
                      "must have {e}, the expert, where the path has it, or `all` in its place");
    return true;
}

static bool read_rule(const struct reader *reader, char *text, struct hrt_hf_rule *rule) {
    char *ours = next_word(&text), *equals = ours ? next_word(&text) : NULL;
    char *theirs = equals && strcmp(equals, "=") == 0 ? next_word(&text) : NULL;
    if (!theirs) return refuse(reader, ours ? ours : "", "is no rule: `path = name form` is");
    *rule = (struct hrt_hf_rule){.ours = ours, .layout = {{.name = theirs}}};
    return read_words(reader, text, &rule->layout[0]) && check_places(reader, rule);
}

static bool read_all(const struct reader *reader, struct hrt_hf_page *page) {
    char *at = page->text;
    for (int count = 0; at; count++) {
        char *end = strchr(at, ',');
        if (end) *end++ = '\0';
        if (count == HRT_HF_PAGE_RULES) return refuse(reader, at, "is one rule too many");
        if (!read_rule(reader, at, &page->rule[count])) return false;
        at = end;
    }
    return true;
}

bool hrt_store_hf_read_page(struct hrt_hf_page *page, const char *like, const char *rules,
                            char *why, size_t room) {
    const struct reader reader = {why, room};
    *page = (struct hrt_hf_page){.text = strdup(rules)};
    page->family = (struct hrt_hf_family){
        .name = "of the page", .like = *like ? like : NULL, .own = page->rule};
    if (!page->text)
        refuse(&reader, rules, "does not fit into memory");
    else if (*like && !hrt_store_hf_family_named(like))
        refuse(&reader, like, "is no family");
    else if (read_all(&reader, page))
        return true;
    hrt_store_hf_free_page(page);
    return false;
}

void hrt_store_hf_free_page(struct hrt_hf_page *page) {
    free(page->text);
    *page = (struct hrt_hf_page){0};
}
