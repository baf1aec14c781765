/** The services that `svc tunnel` opens, and their local ports: `service[:localport]`, those after `--udp` over UDP. */
import type { ForwardedService } from '../../client/node.ts';
import { UsageError } from '../frame/errors.ts';

/** Services on the command line. */
export interface GivenServices {
  readonly services: readonly string[];
  /** An empty text for each `--udp` without a service: then the plain arguments are UDP services. */
  readonly udp: readonly string[];
  readonly localPort: number | undefined;
}

/** Returns the services in the order of the command line, TCP before UDP. @throws UsageError */
export function givenServices({ services, udp, localPort }: GivenServices): ForwardedService[] {
  const alone = udp.includes('') ? 'udp' : 'tcp';
  const wanted = [
    ...services.map((text) => service(text, alone)),
    ...udp.filter((text) => text !== '').map((text) => service(text, 'udp')),
  ];
  if (localPort !== undefined) {
    const [only] = wanted;
    if (only === undefined || wanted.length > 1 || only.localPort !== undefined)
      throw new UsageError(
        '--local-port goes with one service that has no port of its own: else write service:port, as in web:8081 ssh:2222',
      );
    return [{ ...only, localPort }];
  }
  refuseTwins(wanted);
  return wanted;
}

function service(text: string, kind: ForwardedService['kind']): ForwardedService {
  const colon = text.lastIndexOf(':');
  const id = colon < 0 ? text : text.slice(0, colon);
  if (id === '' || id.includes('/'))
    throw new UsageError(`${JSON.stringify(text)} is not a service: expected an id, as svc tunnel lists them`);
  if (colon < 0) return { kind, id };
  const digits = text.slice(colon + 1);
  const localPort = /^\d{1,5}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!(localPort <= 65_535))
    throw new UsageError(`${JSON.stringify(text)}: the local port after ":" is a number from 0 (a free one) to 65535, as in web:8081`);
  return { kind, id, localPort };
}

function refuseTwins(wanted: readonly ForwardedService[]): void {
  const taken = new Set<string>();
  for (const { kind, localPort = 0 } of wanted) {
    const key = `${kind} ${localPort}`;
    if (localPort !== 0 && taken.has(key)) throw new UsageError(`two services want the local port ${localPort}: give them different ones`);
    taken.add(key);
  }
}
