/** `svc admin key …`: server keys, which let clients reach devices. Kept only as a hash: the key itself is shown once. */
import { Command, Option } from 'commander';
import {
  addServerKey,
  changeServerKey,
  checkClaim,
  checkJwksUri,
  checkJwtText,
  checkServerKey,
  type JwtIssuer,
  removeServerKey,
  type ServerKeyRecord,
  serverKey,
  serverKeys,
} from '../../server/administration/index.ts';
import { collect, id } from '../frame/arguments.ts';
import { UsageError } from '../frame/errors.ts';
import { Output } from '../frame/output.ts';
import { givenSecret } from '../frame/secret.ts';
import { argument, refusing } from './refusal.ts';
import { type AdminOptions, administer, adminSubcommand, label, printTable } from './shared.ts';

interface JwtOptions {
  jwtIssuer?: string;
  jwtAudience?: string;
  jwtJwksUri?: string;
  jwtClaim?: string;
}

type AddOptions = AdminOptions & JwtOptions & { product?: string[]; name?: string };
/** `jwt` is false with --no-jwt. */
type SetOptions = AdminOptions & JwtOptions & { name?: string; jwt: boolean };

/** `svc admin key add|list|show|set|remove`. */
export function adminKey(): Command {
  return new Command('key')
    .description('server keys: what a client shows to be connected')
    .addCommand(add())
    .addCommand(list())
    .addCommand(show())
    .addCommand(set())
    .addCommand(remove());
}

function withJwt(command: Command): Command {
  return command
    .option(
      '--jwt-issuer <iss>',
      'clients show a token (JWT) of this issuer beside the key; as the token names it',
      argument((text) => checkJwtText('an issuer', text)),
    )
    .option(
      '--jwt-audience <aud>',
      'whom its tokens are for',
      argument((text) => checkJwtText('an audience', text)),
    )
    .option('--jwt-jwks-uri <url>', 'where its keys are (a JWK Set): https', argument(checkJwksUri))
    .addOption(
      new Option('--jwt-claim <name>', 'claim with the devices, each as product.device (default: svc_ids)').argParser(argument(checkClaim)),
    );
}

/** What was said of the issuer; undefined where nothing was. */
function issuerOf({ jwtIssuer, jwtAudience, jwtJwksUri, jwtClaim }: JwtOptions): Partial<JwtIssuer> | undefined {
  const given = {
    ...(jwtIssuer !== undefined && { issuer: jwtIssuer }),
    ...(jwtAudience !== undefined && { audience: jwtAudience }),
    ...(jwtJwksUri !== undefined && { jwksUri: jwtJwksUri }),
    ...(jwtClaim !== undefined && { svcIdsClaim: jwtClaim }),
  };
  return Object.keys(given).length === 0 ? undefined : given;
}

function add(): Command {
  return withJwt(
    adminSubcommand('add', 'add a server key and print it; it cannot be shown again')
      .argument(
        '[key]',
        'the key, sk- and 16 to 125 letters, digits, - or _; - reads it from standard input; made up when left out',
        keyOrInput,
      )
      .option('--product <id>', 'only for this product; may be given again. Default: all products of the organization', collect(id))
      .option('--name <name>', 'a friendly name', label)
      .option('--org <id>', 'its organization; not needed while there is only one', id),
  ).action((given: string | undefined, options: AddOptions) => {
    const jwt = issuerOf(options);
    const { jwtIssuer, jwtAudience, jwtJwksUri } = options;
    if (jwt !== undefined && [jwtIssuer, jwtAudience, jwtJwksUri].includes(undefined))
      throw new UsageError('--jwt-issuer, --jwt-audience and --jwt-jwks-uri belong together: give all three');
    return refusing(async () => {
      // Before a store is made.
      const secret = await givenSecret(
        { what: 'the server key', option: 'svc admin key add', value: given },
        new Output(options.json === true),
      );
      await addKey(secret === undefined ? undefined : checkServerKey(secret), jwt, options);
    });
  });
}

function addKey(serverKey: string | undefined, jwt: Partial<JwtIssuer> | undefined, options: AddOptions): Promise<void> {
  return administer(options, async (administration, output) => {
    const { org, product, name } = options;
    const added = await addServerKey(administration, { serverKey, organizationId: org, productIds: product, name, jwt });
    output.result({ ...added.record, serverKey: added.serverKey }, added.serverKey);
    output.note(`its id is ${added.record.appId}, by which svc admin key list, show, set and remove know it`);
  });
}

/** What is wrong use is said before anything else. */
const keyOrInput = argument((text) => (text === '-' ? text : checkServerKey(text)));

function list(): Command {
  return adminSubcommand('list', 'list the server keys, without the keys themselves')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const row = (each: ServerKeyRecord) => [
          each.appId,
          each.organizationId,
          products(each),
          each.jwt?.issuer ?? 'key alone',
          each.name ?? undefined,
        ];
        const headings = ['id', 'organization', 'products', 'token', 'name'];
        printTable(output, await serverKeys(administration, options.org), { headings, row, none: 'no server keys' });
      }),
    );
}

function show(): Command {
  return adminSubcommand('show', 'show what a server key admits to, and whose tokens it asks for')
    .argument('<key>', 'the key (sk-…), or the id that the list shows (ap-…)')
    .action((key: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const record = await serverKey(administration, key);
        output.result(record, described(record));
      }),
    );
}

function set(): Command {
  return withJwt(
    adminSubcommand('set', 'change a server key; counts from the next connect, connections that are open stay')
      .argument('<key>', 'the key (sk-…), or the id that the list shows (ap-…)')
      .option('--name <name>', 'a friendly name', label),
  )
    .option('--no-jwt', 'the key alone is enough')
    .action((key: string, options: SetOptions) => {
      const jwt = issuerOf(options);
      if (!options.jwt && jwt !== undefined) throw new UsageError('--no-jwt and the other --jwt options exclude each other');
      if (options.jwt && jwt === undefined && options.name === undefined) throw new UsageError('nothing to change: see --help');
      return administer(options, async (administration, output) => {
        const record = await changeServerKey(administration, key, { name: options.name, jwt: options.jwt ? jwt : null });
        output.result(record, described(record));
      });
    });
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a server key; connections that are open stay')
    .argument('<key>', 'the key (sk-…), or the id that the list shows (ap-…)')
    .action((key: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const appId = await removeServerKey(administration, key);
        output.result({ removed: appId }, `removed ${appId}`);
      }),
    );
}

function products({ productIds }: ServerKeyRecord): string {
  return productIds?.join(' ') ?? 'all products';
}

function described(record: ServerKeyRecord): string[] {
  const { appId, name, jwt } = record;
  const issuer = jwt && [
    `issuer    ${jwt.issuer}`,
    `audience  ${jwt.audience}`,
    `keys      ${jwt.jwksUri}`,
    `claim     ${jwt.svcIdsClaim}`,
  ];
  return [`${appId}  ${name ?? ''}`.trimEnd(), `products  ${products(record)}`, ...(issuer ?? ['token     none: the key alone is enough'])];
}
