package main

import (
	"os"
	"time"
	_ "time/tzdata" // a phone's own may be absent, or of its last system update
)

// localTime takes the time zone from TZ, which the runtime does not look at on Android: months begin there.
func localTime() {
	if zone, err := time.LoadLocation(os.Getenv("TZ")); err == nil {
		time.Local = zone
	}
}
