/** Where tests run `svc doctor`: a simulation in which the client and the device are each behind a NAT. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { type DoctorOptions, doctor } from '../../cli/doctor.ts';
import { Output } from '../../cli/frame/output.ts';
import type { NatOptions } from '../../testing/index.ts';
import { ids, SCT, SERVER_URL } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { homeOf, type NatKind } from '../support/nat-kinds.ts';

/** Waits for file operations under way; otherwise any amount of virtual time passes meanwhile. */
export async function filesDone(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (process.getActiveResourcesInfo().some((name) => /^(FS|Close)Req/.test(name)));
}

/** A folder with files of tokens, and with the state of each clinic. */
export class Clinics {
  readonly folder: string;
  #states = 0;

  static async open(): Promise<Clinics> {
    const clinics = new Clinics(await mkdtemp(join(tmpdir(), 'svc-doctor-')));
    await writeFile(join(clinics.folder, 'sct'), SCT);
    await writeFile(join(clinics.folder, 'wrong-sct'), 'wrong');
    return clinics;
  }

  private constructor(folder: string) {
    this.folder = folder;
  }

  clinic(): Clinic {
    return new Clinic(join(this.folder, 'sct'), join(this.folder, `state-${++this.#states}`));
  }

  close(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

/** A client and a device, each behind a NAT of a kind, and the output of `svc doctor` at the client. */
export class Clinic {
  readonly fixture = new ProductFixture({ hop: filesDone });
  readonly #sctFile: string;
  readonly options: DoctorOptions;
  stdout = '';
  stderr = '';

  /** @param sctFile a file with the device's token @param state directory of the client's state */
  constructor(sctFile: string, state: string) {
    this.options = { timeout: 20_000, local: false, state, json: true };
    this.#sctFile = sctFile;
  }

  async open(client: NatKind, device: NatKind, more: { rendezvous?: 'off' | 'paired'; stunPort?: number; box?: Partial<NatOptions> } = {}) {
    const { rendezvous, stunPort = null, box = {} } = more;
    const station = await this.fixture.station({ stunPort });
    const home = homeOf(this.fixture.sim, device, 'device-home', 2, box);
    const office = homeOf(this.fixture.sim, client, 'client-home', 1, box);
    const under = await this.fixture.attached({ environment: home.host, ...(rendezvous !== undefined && { rendezvous }) });
    const server = { server: SERVER_URL, serverFingerprint: station.fingerprint };
    Object.assign(this.options, server, {
      product: ids.productId,
      deviceId: ids.deviceId,
      sctFile: this.#sctFile,
      fingerprint: under.device.deviceFingerprint,
    });
    return {
      run: (options: Partial<DoctorOptions> = {}) => this.#run(office.host, options),
      under,
      station,
      client: office.host,
      clock: home.host.clock,
    };
  }

  async #run(environment: ReturnType<typeof homeOf>['host'], options: Partial<DoctorOptions>): Promise<string> {
    const all = { ...this.options, ...options };
    const sink = (name: 'stdout' | 'stderr') =>
      new Writable({
        write: (chunk, _encoding, done) => {
          this[name] += chunk;
          done();
        },
      });
    const output = new Output(all.json === true, { stdout: sink('stdout'), stderr: sink('stderr') });
    const work = doctor(undefined, all, { environment, output, signal: new AbortController().signal });
    return this.fixture.settle(
      work.then(
        () => 'done',
        (error: Error) => error.message,
      ),
    );
  }

  get document(): Record<string, unknown> {
    return JSON.parse(this.stdout);
  }
}
