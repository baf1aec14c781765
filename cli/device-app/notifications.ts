/**
 * Push notifications of `svc device`: each goes to the users who chose its category and have a push token.
 *
 * While the device is not attached, the newest notification of each category is kept. A token that the provider reports
 * as unregistered is removed from its user. Sending never fails the device: `onSent` receives the results.
 */
import { type Device, type Iam, type Log, SvcError } from '../../device/index.ts';
import { isUnregistered } from '../../protocol/control/index.ts';

/** Categories that users can choose. The alarm uses the one of device.json, CRITICAL by default; its end is INFO. */
export const CATEGORIES = ['CRITICAL', 'WARNING', 'INFO'] as const;

export type Category = (typeof CATEGORIES)[number];

export interface Notification {
  readonly category: Category;
  readonly title: string;
  readonly body: string;
}

/** The result of one notification to one user: the provider's HTTP status, or the reason why there is none. */
export interface Sent {
  readonly category: Category;
  readonly username: string;
  readonly status?: number;
  readonly error?: string;
}

/** Concurrent notifications; the base station accepts 8 of a device. */
const PARALLEL = 4;

interface PendingNotification {
  readonly notification: Notification;
  /** Callbacks for this notification, and for those that it replaced. */
  readonly sent: readonly (() => void)[];
}

interface Recipient {
  readonly username: string;
  readonly token: string;
  readonly projectId: string;
}

export class Notifications {
  readonly #device: Pick<Device, 'createPushNotification'>;
  readonly #iam: Iam;
  readonly #log: Log;
  readonly #onSent: (sent: Sent) => void;
  readonly #kept = new Map<Category, PendingNotification>();
  #attached = false;

  constructor(device: Pick<Device, 'createPushNotification' | 'onDeviceEvent'>, iam: Iam, log: Log, onSent: (sent: Sent) => void) {
    this.#device = device;
    this.#iam = iam;
    this.#log = log;
    this.#onSent = onSent;
    device.onDeviceEvent((event) => {
      if (event === 'ATTACHED') this.#attach();
      else if (event === 'DETACHED' || event === 'CLOSED') this.#attached = false;
    });
  }

  /**
   * Sends a notification. Resolves when it was sent to each user, or could not be; for a kept or replaced one, after
   * the device is attached. Never rejects.
   */
  async send(notification: Notification): Promise<void> {
    if (!this.#attached) return this.#keep(notification);
    const recipients = this.#recipients(notification.category);
    const worker = async (): Promise<void> => {
      for (let next = recipients.shift(); next !== undefined; next = recipients.shift()) await this.#sendTo(next, notification);
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
  }

  #keep(notification: Notification): Promise<void> {
    const { category } = notification;
    return new Promise((resolve) => {
      this.#kept.set(category, { notification, sent: [...(this.#kept.get(category)?.sent ?? []), resolve] });
    });
  }

  #attach(): void {
    this.#attached = true;
    const kept = [...this.#kept.values()];
    this.#kept.clear();
    for (const { notification, sent } of kept) {
      void this.send(notification).then(() => {
        for (const resolve of sent) resolve();
      });
    }
  }

  #recipients(category: Category): Recipient[] {
    return this.#iam.users.flatMap(({ username, push, notificationCategories }) => {
      const { token, projectId } = push ?? {};
      if (!notificationCategories.includes(category) || token === undefined || projectId === undefined) return [];
      return [{ username, token, projectId }];
    });
  }

  async #sendTo({ username, token, projectId }: Recipient, { category, title, body }: Notification): Promise<void> {
    const push = this.#device.createPushNotification();
    push.setProjectId(projectId);
    push.setPayload(JSON.stringify({ message: { token, notification: { title, body }, data: { category } } }));
    try {
      await push.send();
      const status = push.getResponseStatusCode();
      if (isUnregistered({ statusCode: status, body: push.getResponseBody() })) await this.#forget(username, token);
      this.#onSent({ category, username, status });
    } catch (error) {
      const reason = error instanceof SvcError ? error.code : String(error);
      this.#log.warn('a notification could not be sent', { username, category, reason });
      this.#onSent({ category, username, error: reason });
    }
  }

  /** Removes the token from the user, unless the user has set another one meanwhile. */
  async #forget(username: string, token: string): Promise<void> {
    this.#log.info('the push provider no longer knows the token of a user', { username });
    await this.#iam.update((draft) => {
      if (draft.state.users.user(username)?.push?.token === token) draft.setUserPush(username, undefined);
    });
  }
}
