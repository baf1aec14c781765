/**
 * docs/iam.md: its table has every endpoint with its action, its configuration does what it says, and its state can be
 * loaded.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultIamLimits, Rules, readConfiguration, readState } from '../../../../device/iam/index.ts';
import { blocksOf, Program } from '../../../support/document-blocks.ts';
import { caller, fakeSecrets, iamOf, key, stateOf, user } from '../model.ts';
import { actions, references } from './reference.ts';

const page = readFileSync(new URL('../../../../docs/iam.md', import.meta.url), 'utf8');
const [configuration, state] = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json]) => JSON.parse(json!) as unknown);

describe('docs/iam.md', () => {
  it('lists every endpoint with its action', () => {
    const rows = [...page.matchAll(/^\| `((?:GET|PUT|POST|DELETE) [^`]+)` \| (?:`([^`]+)`|none) \|/gm)];
    expect(Object.fromEntries(rows.map(([, endpoint, action]) => [endpoint, action]))).toEqual(
      Object.fromEntries(references.map(({ endpoint }) => [endpoint, actions[endpoint]])),
    );
  });

  it('shows a configuration that lets a visitor reach one tunnel', { tags: ['slow'] }, () => {
    const visitor = user('vera', { role: 'Visitor', fingerprints: [{ fingerprint: key(1) }] });
    const iam = iamOf({ configuration: readConfiguration(configuration), state: stateOf([visitor]) });
    const may = (action: string, attributes: Record<string, string> = {}) => iam.check(caller(1), action, attributes);
    expect(may('TcpTunnel:Connect', { 'TcpTunnel:ServiceId': 'web', 'TcpTunnel:ServiceType': 'http' })).toBe(true);
    expect(may('TcpTunnel:Connect', { 'TcpTunnel:ServiceId': 'ssh', 'TcpTunnel:ServiceType': 'ssh' })).toBe(false);
    expect(may('Heating:Set', { Degrees: '23' })).toBe(true);
    expect(may('Heating:Set', { Degrees: '23.5' })).toBe(false);
    expect(may('IAM:GetUser', { 'IAM:Username': 'vera' })).toBe(true);
    expect(may('IAM:GetUser', { 'IAM:Username': 'admin' })).toBe(false);
    expect(iam.check(caller(2), 'IAM:PairingPasswordInvite')).toBe(true);
    const text = iam.explain(caller(1), 'TcpTunnel:Connect', { 'TcpTunnel:ServiceId': 'ssh' }).text;
    expect(page).toContain(`text: '${text}'`);
  });

  it('shows a call of explain that runs', async () => {
    const iam = iamOf({ configuration: readConfiguration(configuration), state: stateOf([]) });
    for (const block of blocksOf(page)) await new Program({}, { iam, fingerprint: key(1) }).run(block);
  });

  it('shows a state that can be loaded', async () => {
    const options = { rules: new Rules(defaultIamLimits), notificationCategories: [], secrets: fakeSecrets() };
    expect((await readState(state, options)).users.names).toEqual(['admin']);
  });

  it('states the limits', () => {
    const rows = [...page.matchAll(/(`max\w+`(?:, `\w+`)*|`min\w+`, `max\w+`) \| ([\w ,]+?) \|/g)];
    const documented = rows.flatMap(([, names, values]) =>
      names!.split(', ').map((name, i) => [name.replaceAll('`', ''), values!.split(', ')[i]!.replaceAll(',', '')] as const),
    );
    expect(Object.fromEntries(documented)).toEqual(
      Object.fromEntries(Object.entries(defaultIamLimits).map(([name, value]) => [name, String(value)])),
    );
  });
});
