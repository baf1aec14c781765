/** `device.json` of `svc device`. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { parseDeviceConfiguration, readDeviceConfiguration } from '../../cli/device-app/configuration.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

const web = { Id: 'web', Type: 'http', Host: '127.0.0.1', Port: 8080 };

describe('device.json', () => {
  test('has services with metadata, the alarm, and the pace of the room', () => {
    const document = {
      TcpTunnels: [
        { ...web, Metadata: { title: 'Camera' } },
        { Id: 'ssh', Type: 'ssh', Host: 'host.example', Port: 22 },
      ],
      UdpTunnels: [{ Id: 'web', Type: 'dns', Host: '::1', Port: 53, IdleTimeout: 30 }],
      Rendezvous: { Mode: 'paired', Candidates: ['203.0.113.7:5593', '[2001:db8::7]:1'], NoCandidatesOn: ['eth1'], HardNat: false },
      OverTemperature: { Limit: 28.5, Category: 'WARNING' },
      TimeConstant: 5,
    };
    expect(parseDeviceConfiguration(document)).toEqual({
      tcpTunnels: [
        { id: 'web', type: 'http', host: '127.0.0.1', port: 8080, metadata: { title: 'Camera' } },
        { id: 'ssh', type: 'ssh', host: 'host.example', port: 22 },
      ],
      udpTunnels: [{ id: 'web', type: 'dns', host: '::1', port: 53, idleTimeout: 30_000 }],
      rendezvous: { mode: 'paired', candidates: ['203.0.113.7:5593', '[2001:db8::7]:1'], noCandidatesOn: ['eth1'], hardNat: false },
      overTemperature: { limit: 28.5, category: 'WARNING' },
      timeConstant: 5,
    });
    expect(parseDeviceConfiguration({ OverTemperature: { Limit: 28 } }).overTemperature).toEqual({ limit: 28, category: 'CRITICAL' });
    expect(parseDeviceConfiguration({ Rendezvous: {} }).rendezvous).toEqual({});
    expect(parseDeviceConfiguration({})).toEqual({ tcpTunnels: [], udpTunnels: [] });
  });

  test.each<[unknown, string]>([
    [[], 'must be an object'],
    [{ TcpTunnel: [] }, 'unknown member "TcpTunnel"'],
    [{ TcpTunnels: {} }, 'TcpTunnels: must be an array'],
    [{ TcpTunnels: [web, { ...web, Id: undefined }] }, 'TcpTunnels[1]: "Id" is missing'],
    [{ TcpTunnels: [web, web] }, 'TcpTunnels[1].Id: "web" is used twice'],
    [{ TcpTunnels: [{ ...web, Id: 'a/b' }] }, 'TcpTunnels[0].Id: must be 1 to 64 characters without "/", and not "." or ".."'],
    [{ TcpTunnels: [{ ...web, Id: '..' }] }, 'TcpTunnels[0].Id: must be 1 to 64 characters without "/", and not "." or ".."'],
    [{ TcpTunnels: [{ ...web, Host: '' }] }, 'TcpTunnels[0].Host: must be an address or a host name'],
    [{ TcpTunnels: [{ ...web, Port: '80' }] }, 'TcpTunnels[0].Port: must be a whole number'],
    [{ TcpTunnels: [{ ...web, Port: 65_536 }] }, 'TcpTunnels[0].Port: must be from 1 to 65535'],
    [{ TcpTunnels: [{ ...web, Metadata: { title: 1 } }] }, 'TcpTunnels[0].Metadata.title: must be a text'],
    [{ TcpTunnels: [{ ...web, Password: 'x' }] }, 'TcpTunnels[0]: unknown member "Password"'],
    [{ UdpTunnels: [web, web] }, 'UdpTunnels[1].Id: "web" is used twice'],
    [{ UdpTunnels: [{ ...web, IdleTimeout: 0 }] }, 'UdpTunnels[0].IdleTimeout: must be from 1 to 86400'],
    [{ UdpTunnels: [{ ...web, IdleTimeout: 1.5 }] }, 'UdpTunnels[0].IdleTimeout: must be a whole number'],
    [{ TcpTunnels: [{ ...web, IdleTimeout: 30 }] }, 'TcpTunnels[0]: unknown member "IdleTimeout"'],
    [{ OverTemperature: { Limit: '28' } }, 'OverTemperature.Limit: must be a number'],
    [{ OverTemperature: { Limit: 28, Category: 'LOUD' } }, 'OverTemperature.Category: must be one of CRITICAL, WARNING, INFO'],
    [{ Rendezvous: { Mode: 'all' } }, 'Rendezvous.Mode: must be one of anyone, paired, off'],
    [{ Rendezvous: { Candidates: ['home:1'] } }, 'Rendezvous.Candidates[0]: is wrong: "home:1" is not an address with port'],
    [{ Rendezvous: { Candidates: ['127.0.0.1:1'] } }, 'Rendezvous.Candidates[0]: is wrong: 127.0.0.1 is not an address at which others'],
    [{ Rendezvous: { Candidates: Array(4).fill('203.0.113.7:1') } }, 'Rendezvous.Candidates: has at most 3 entries'],
    [{ Rendezvous: { NoCandidatesOn: 'eth0' } }, 'Rendezvous.NoCandidatesOn: must be an array'],
    [{ Rendezvous: { PortMapping: 'upnp' } }, 'Rendezvous.PortMapping: must be one of auto, off'],
    [{ Rendezvous: { HardNat: 1 } }, 'Rendezvous.HardNat: must be true or false'],
    [{ Rendezvous: { Stun: true } }, 'Rendezvous: unknown member "Stun"'],
    [{ TimeConstant: 0 }, 'TimeConstant: must be from 1 to 86400'],
  ])('%j is refused with its place', (document, message) => {
    expect(() => parseDeviceConfiguration(document)).toThrow(message);
  });

  test('is taken from the directory when none is named; a named one must exist', async () => {
    const own = join(directory, 'device.json');
    const other = join(directory, 'other.json');
    expect(await readDeviceConfiguration(undefined, own)).toEqual({ tcpTunnels: [], udpTunnels: [] });
    await writeFile(own, JSON.stringify({ TimeConstant: 5 }));
    await writeFile(other, JSON.stringify({ TimeConstant: 'x' }));
    expect(await readDeviceConfiguration(undefined, own)).toMatchObject({ timeConstant: 5 });
    await expect(readDeviceConfiguration(other, own)).rejects.toThrow(`${other}: TimeConstant: must be a number`);
    await expect(readDeviceConfiguration(`${other}x`, own)).rejects.toThrow('there is no such file');
  });
});
