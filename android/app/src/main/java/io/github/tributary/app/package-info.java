/**
 * The app on Android: thin adapters between the system and {@link io.github.tributary.core}. No downloaded data passes
 * through it.
 */
package io.github.tributary.app;
