//go:build android || phone

package main

import (
	"os"
	"path/filepath"
	"time"
	_ "time/tzdata" // the phone's own data may be missing, or as old as its last system update
)

// prepare does what the runtime does not do on Android. The programs for armv7 and x86_64 are static programs for
// Linux, and their runtime does not know that it is on Android.
func prepare() {
	localTime()
	trust("/")
}

// localTime sets the time zone from TZ, which the runtime ignores on Android: the months of data limits begin in local
// time.
func localTime() {
	if zone, err := time.LoadLocation(os.Getenv("TZ")); err == nil {
		time.Local = zone
	}
}

// trust points crypto/x509 to Android's certificate authorities, unless the environment names others: the updatable
// ones (Android 14 and newer), otherwise those of the system.
func trust(root string) {
	if os.Getenv("SSL_CERT_DIR") != "" {
		return
	}
	dirs := []string{"apex/com.android.conscrypt/cacerts", "system/etc/security/cacerts"}
	for _, dir := range dirs {
		dir = filepath.Join(root, dir)
		if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
			_ = os.Setenv("SSL_CERT_DIR", dir) // fails only for an invalid name
			return
		}
	}
}
