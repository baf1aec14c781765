/** The events of a client's connection. */

/**
 * Events of a connection. CHANNEL_CHANGED: the type or path changed while connected. WAITING_FOR_ATTACH: while
 * connecting, with the option IgnoreDeviceNotAttached: the device is not attached to the base station, and the connect
 * waits for it. RESTING: no path works any longer (`restReason`); the connection continues when one is found (RESUMED),
 * else it ends a minute later (CLOSED). CRAMPED: bytes of streams that the application has not read leave so little
 * memory that further streams are slow; read or abort them. RELIEVED: that is over.
 */
export type ConnectionEvent =
  | 'CONNECTED'
  | 'CLOSED'
  | 'CHANNEL_CHANGED'
  | 'WAITING_FOR_ATTACH'
  | 'RESTING'
  | 'RESUMED'
  | 'CRAMPED'
  | 'RELIEVED';

/** Receives the events of a connection. */
export interface ConnectionEventsCallback {
  onEvent(event: ConnectionEvent): void;
}
