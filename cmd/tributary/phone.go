//go:build android || phone

package main

import (
	"os"
	"path/filepath"
	"time"
	_ "time/tzdata" // a phone's own may be absent, or of its last system update
)

// prepare makes up for what the runtime does not do on Android. The programs for armv7 and x86_64 are static programs for
// Linux, which the runtime does not know to be on Android.
func prepare() {
	localTime()
	trust("/")
}

// localTime takes the time zone from TZ, which the runtime does not look at on Android: months begin there.
func localTime() {
	if zone, err := time.LoadLocation(os.Getenv("TZ")); err == nil {
		time.Local = zone
	}
}

// trust names Android's certificate authorities to crypto/x509, unless the environment names others: those that updates bring
// (Android 14 and newer), or those of the system.
func trust(root string) {
	if os.Getenv("SSL_CERT_DIR") != "" {
		return
	}
	dirs := []string{"apex/com.android.conscrypt/cacerts", "system/etc/security/cacerts"}
	for _, dir := range dirs {
		dir = filepath.Join(root, dir)
		if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
			_ = os.Setenv("SSL_CERT_DIR", dir) // only a bad name fails
			return
		}
	}
}
