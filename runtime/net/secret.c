#include "runtime/net/secret.h"

#include <gcrypt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/files.h"

static bool read_file(struct hrt_secret *secret, const char *path, struct hrt_error *error) {
    const char *why;
    struct stat status;
    FILE *file = hf_input(path, false, &why);
    if (!file) return hrt_fail_usage(error, "cannot read %s, the secret: %s", path, why);
    const bool known = fstat(fileno(file), &status) == 0;
    const bool read = fgets(secret->text, sizeof secret->text, file) != NULL;
    fclose(file);
    if (known && status.st_mode & 077)
        return hrt_fail_usage(error, "%s, the secret, is open to others: chmod 600", path);
    secret->text[strcspn(secret->text, "\r\n")] = '\0';
    if (!read || !*secret->text) return hrt_fail_usage(error, "%s holds no secret", path);
    return true;
}

bool hrt_net_secret_read(struct hrt_secret *secret, struct hrt_error *error) {
    const char *text = getenv("HECATE_SECRET"), *path = getenv("HECATE_SECRET_FILE");
    *secret = (struct hrt_secret){0};
    if (text && path)
        return hrt_fail_usage(error, "HECATE_SECRET and HECATE_SECRET_FILE are both set");
    if (path) return read_file(secret, path, error);
    if (!text) return true;
    if (!*text || strlen(text) >= sizeof secret->text)
        return hrt_fail_usage(error, "HECATE_SECRET takes 1 to %d characters",
                              (int)sizeof secret->text - 1);
    memcpy(secret->text, text, strlen(text) + 1);
    return true;
}

// The library wants to be begun with.
static bool begin(void) {
    if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P)) return true;
    if (!gcry_check_version(NULL)) return false;
    gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
    gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
    return true;
}

void hrt_net_nonce(void *bytes, size_t count) {
    begin();
    gcry_randomize(bytes, count, GCRY_STRONG_RANDOM);
}

bool hrt_net_prove(const struct hrt_secret *secret, const struct hrt_part *parts, int count,
                   unsigned char proof[HRT_PROOF]) {
    gcry_mac_hd_t mac;
    size_t bytes = HRT_PROOF;
    char key[sizeof secret->text + 8];
    snprintf(key, sizeof key, "hecate:%s", secret->text); // A key is never empty.
    if (!begin() || gcry_mac_open(&mac, GCRY_MAC_HMAC_SHA256, 0, NULL)) return false;
    bool sound = !gcry_mac_setkey(mac, key, strlen(key));
    for (int i = 0; sound && i < count; i++)
        sound = !gcry_mac_write(mac, parts[i].data, parts[i].bytes);
    sound = sound && !gcry_mac_read(mac, proof, &bytes);
    gcry_mac_close(mac);
    return sound;
}

bool hrt_net_proves(const struct hrt_secret *secret, const struct hrt_part *parts, int count,
                    const unsigned char proof[HRT_PROOF]) {
    unsigned char own[HRT_PROOF], differ = 0;
    if (!hrt_net_prove(secret, parts, count, own)) return false;
    for (int i = 0; i < HRT_PROOF; i++) differ |= (unsigned char)(own[i] ^ proof[i]);
    return differ == 0;
}
