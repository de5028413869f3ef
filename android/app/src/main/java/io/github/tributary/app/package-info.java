/** The app on Android: thin adapters between the system and {@link io.github.tributary.core}. No download passes through. */
package io.github.tributary.app;
